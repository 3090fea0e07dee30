// The public /v1 API as the pages use it: JSON in, JSON or a readable error out.

const ANSWER_MS = 30_000;

/** An answer that is not 2xx, with the sentence that the server gave, and its faults by field. */
export class ApiError extends Error {
  /** @param {number} status @param {string} detail @param {{field: string, message: string}[]} [faults] */
  constructor(status, detail, faults = []) {
    super(detail);
    this.status = status;
    this.faults = faults;
  }
}

/**
 * @param {string} path
 * @param {{method?: string, body?: unknown, headers?: Record<string, string>}} [options]
 * @returns {Promise<any>} the parsed answer, null when it has no body
 */
export async function api(path, { method = "GET", body, headers = {} } = {}) {
  const request = { method, headers: { accept: "application/json", ...headers }, credentials: "same-origin" };
  if (body !== undefined) {
    request.headers["content-type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  const [answer, text] = await send(path, request);
  if (answer.status === 401) {
    location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
    throw new ApiError(401, "Your session has ended; log in again."); // nothing was done
  }
  if (!answer.ok) throw refusal(answer, text);
  return text ? JSON.parse(text) : null;
}

async function send(path, request) {
  try {
    const answer = await fetch(path, { ...request, signal: AbortSignal.timeout(ANSWER_MS) });
    return [answer, await answer.text()]; // one that breaks off is none
  } catch {
    throw new ApiError(0, "The server does not answer. `forecurve status` on its machine says what is running.");
  }
}

function refusal(answer, text) {
  try {
    const problem = JSON.parse(text);
    const request = problem.request_id ? ` (request ${problem.request_id})` : "";
    return new ApiError(answer.status, `${problem.detail || problem.title}${answer.status >= 500 ? request : ""}`, problem.errors);
  } catch {
    return new ApiError(answer.status, `The server answered ${answer.status} ${answer.statusText}.`);
  }
}
