/**
 * The places that the client works in. Deprecated since 2026-07-28 (SEP-2577), where it still works: new servers better take
 * directories as arguments of their tools.
 */
import * as Method from "@skein/protocol/Method"
import type * as Wire from "@skein/protocol/Roots"
import type { CallOptions, McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { InputError } from "./InputError.ts"
import { requestInput } from "./internal/input/requestInput.ts"

/** How the client is asked. `key` and `unasked` are of the request era; see `Elicitation`. */
export interface Options extends CallOptions {}

/** A directory or file, as a `file://` URI. It guides, and guards nothing: check what is read or written all the same. */
export type Root = Wire.Root

/**
 * Asks the client for its roots (`roots/list`), while a request of its is handled. Works alike in all revisions; see
 * `Elicitation` for what a question means for a handler. Fails with `InputError`: `MissingCapability` where the client has none.
 */
export const list = (options?: Options): Effect.Effect<ReadonlyArray<Root>, InputError, McpRequest> =>
  Effect.map(
    requestInput({
      method: Method.ListRoots,
      params: {},
      missing: ({ roots }) => typeof roots === "object" ? undefined : { roots: {} }
    }, options),
    ({ roots }) => roots
  )
