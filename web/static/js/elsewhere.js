// @ts-check
/** Addresses that MLflow's client prints (`/mlflow/#/experiments/0/runs/run_...`) lead to our page of that run. What
 * stands behind `#` never reaches the service, so that the page has to look. */
export function startElsewhere() {
  const asked = /^#\/experiments\/[^/]+\/runs\/([\w-]+)/.exec(location.hash);
  if (asked) location.replace(`/runs/${asked[1]}`);
}
