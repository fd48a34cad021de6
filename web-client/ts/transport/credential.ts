/** What a caller shows a deployment that guards itself. Depends on {@link CallFailure} alone. */
import { CallFailure, drawn } from "./status.js";

/**
 * A bearer token, or a function that gives one. The function is asked before the first call, and again when a call is
 * refused as `unauthenticated`; what it gave last is used until then.
 */
export type Credential = string | (() => string | Promise<string>);

/** Keeps the token that was given last. Callers that are refused at once make one request for another. */
export class CredentialSource {
  readonly #credential: Credential | undefined;
  #token: Promise<string> | undefined;

  /** @throws TypeError, in words, for what is none; callers without types pass anything. */
  constructor(credential: Credential | undefined) {
    if (!["undefined", "string", "function"].includes(typeof credential)) {
      throw new TypeError("`credential` is neither a string nor a function");
    }
    this.#credential = credential;
  }

  /**
   * The token; `undefined` where none was configured. `refused` is one that a deployment did not accept: another is asked
   * for, unless somebody else has done so.
   *
   * @throws {@link CallFailure} `unauthenticated`, not stated, when the function fails.
   */
  async token(refused?: string): Promise<string | undefined> {
    const credential = this.#credential;
    if (typeof credential !== "function") return credential;
    let isRenewed = false;
    for (;;) {
      const asked = (this.#token ??= Promise.resolve().then(credential));
      const forget = () => {
        if (this.#token === asked) this.#token = undefined;
      };
      let token: string;
      try {
        token = await asked;
      } catch (cause) {
        forget();
        throw new CallFailure(drawn("unauthenticated", "the credential can not be obtained", cause));
      }
      if (token !== refused) return token;
      forget();
      // Asked for after the refusal: there is no other.
      if (isRenewed) return token;
      isRenewed = true;
    }
  }

  /** Whether there may be another token than a refused one. */
  get isRenewable(): boolean {
    return typeof this.#credential === "function";
  }
}
