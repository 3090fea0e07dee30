// Names that find room at the edge of a chart and are told apart there: of long ones the middle is left out, or what all of them share;
// those that are the same even so are numbered.

const BREAK = /[\s=_,;:/()]/;

/** @param {string[]} names @param {number} most letters @returns {string[]} */
export function shortNames(names, most) {
  const long = names.filter((name) => name.length > most);
  const plain = (name) => withoutMiddle(name, most);
  const [start, end] = new Set(long.map(plain)).size < new Set(long).size ? [shared(long), sharedEnd(long)] : [0, 0];
  const own = (name) => (name.length > most && name.length > start + end ? `${start ? "…" : ""}${name.slice(start, name.length - end)}${end ? "…" : ""}` : name);
  return numbered(names.map((name) => plain(own(name))));
}

/** `a (1)`, `a (2)` where several are called so. */
function numbered(names) {
  const met = new Map();
  return names.map((name) => {
    if (names.indexOf(name) === names.lastIndexOf(name)) return name;
    met.set(name, (met.get(name) ?? 0) + 1);
    return `${name} (${met.get(name)})`;
  });
}

function withoutMiddle(name, most) {
  if (name.length <= most) return name;
  const head = Math.ceil((most - 1) / 2);
  return `${name.slice(0, head)}…${name.slice(head + 1 - most)}`;
}

/** How many letters all names begin with, up to a place to break. */
function shared(names) {
  const [first, ...others] = names;
  let count = 0;
  while (count < first.length && others.every((name) => name[count] === first[count])) count++;
  while (count > 0 && !BREAK.test(first[count - 1])) count--;
  return count;
}

const turned = (name) => [...name].reverse().join("");
const sharedEnd = (names) => shared(names.map(turned));
