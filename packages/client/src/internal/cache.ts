/**
 * The cache of responses, as the calls see it.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import type { ClientError } from "../ClientError.ts"

/** A result, and whether it may be kept: one that took answers of the host may not. */
export interface Got<R> {
  readonly result: R
  readonly keep: boolean
}

/** See the module's text. */
export interface Cached {
  /** Gives the fresh response that is kept, unless it is to be refreshed; or gets one, and keeps it if that is allowed. */
  readonly through: <P, R>(
    method: Method.RequestMethod<P, R>,
    params: P,
    mode: "use" | "refresh",
    get: Effect.Effect<Got<R>, ClientError>
  ) => Effect.Effect<R, ClientError>
  /** A notice of the server may make stale what is kept. */
  readonly notice: (notification: { readonly method: string; readonly params?: JsonObject | undefined }) => void
}

/** Keeps nothing. */
export const none: Cached = {
  through: (_method, _params, _mode, get) => Effect.map(get, ({ result }) => result),
  notice: () => {}
}
