// What most suites of a browser begin and end with.

import { after, before } from "node:test";
import { launch } from "./browser.mjs";
import { Deployment } from "./deployment.mjs";

/**
 * A deployment, started with `options`, and a browser, from the first test of the suite that calls this to its last: in the
 * object that is returned, once the suite has begun. A test may put another deployment there, which is then stopped at the end.
 */
export function inBrowser(options) {
  const suite = { deployment: undefined, browser: undefined };
  before(async () => {
    suite.deployment = await Deployment.start(options);
    suite.browser = await launch();
  });
  after(async () => {
    await suite.browser?.close();
    await suite.deployment?.stop();
  });
  return suite;
}
