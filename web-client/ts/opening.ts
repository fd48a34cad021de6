/** How an endpoint is run in this context, be that a page or the worker of one. */
import { abortable } from "./abort.js";
import { loadCore } from "./core.js";
import { fromCore } from "./errors.js";
import { LocalSeat, News } from "./seat.js";
import type { Place } from "./tabs/tab_seat.js";
import type { Connection } from "./transport/connection.js";
import { CoreTransport } from "./transport/core_transport.js";
import type { OpenOptions } from "./types.js";

/** What an endpoint is opened with, checked. It crosses to a worker as it is, but for what only a page can hold. */
export interface Plan {
  readonly url: string;
  readonly name: string;
  /** A thumbprint URI, or a key as its canonical JSON. */
  readonly registryKey: string | undefined;
  /** The thumbprint URI of that key. */
  readonly thumbprint: string | undefined;
  readonly admissionToken: string | undefined;
  readonly store: string;
  readonly isShared: boolean;
  readonly wasm: OpenOptions["wasm"];
}

/** The seat's place that runs the endpoint of this plan here, when the store is this context's. */
export function placeOf(plan: Plan, connection: Connection, onOpening: OpenOptions["onOpening"]): Place {
  const { url, name, registryKey, thumbprint, admissionToken, store, isShared, wasm } = plan;
  const run = async (ending: AbortSignal): Promise<LocalSeat> => {
    const module = await abortable(loadCore(wasm), ending);
    const news = new News(onOpening);
    const transport = new CoreTransport(connection);
    try {
      // Not raced against the signal: the module itself stops, and has let go of the store when this rejects.
      const core = await module.open(transport, name, registryKey, admissionToken, store, ending, news.observer);
      return new LocalSeat(core, news, connection);
    } catch (thrown) {
      throw fromCore(thrown);
    }
  };
  return { store, terms: { url, name, registryKey: thumbprint }, isShared, run };
}
