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
import * as Codec from "./Codec.ts"
import * as Envelope from "./internal/envelope.ts"
import * as Messages from "./internal/messages.ts"
import * as Shapes from "./internal/shapes.ts"
import type { Source } from "./internal/source.ts"
import { latest, type Revision } from "./Revision.ts"

export type { Source } from "./internal/source.ts"

/** What the model has for one official definition in one revision. */
export interface Definition {
  /** The official name in this revision. */
  readonly name: string
  /**
   * What covers the definition. `model`: a schema of the model. `message`: a request, a notification or an answer, built from
   * the method table. `envelope`: a JSON-RPC shape, read and written by the `JsonRpc` module.
   */
  readonly kind: "model" | "message" | "envelope"
  /** The canonical schema: generate from it. `Type` and `Encoded` are the same, and there are no services. */
  readonly schema: Schema.Codec<unknown>
  /** Writes a canonical value in the official shape of this revision, or says why the revision cannot carry it. */
  readonly write: (
    value: unknown
  ) => Result.Result<unknown, { readonly _tag: "Unrepresentable"; readonly message: string }>
  /** Reads a value of the official shape: lifts it and validates it. The error is one line that names the path. */
  readonly read: (raw: unknown) => Result.Result<unknown, string>
}

const define = (
  name: string,
  kind: Definition["kind"],
  revision: Revision,
  schema: Schema.Codec<unknown>
): Definition => ({
  name,
  kind,
  schema,
  write: (value) => Codec.encode(schema, revision, value),
  read: (raw) => Codec.decode(schema, revision, raw, name)
})

const build = (source: Source): ReadonlyMap<string, Definition> => {
  const revision = source === "tasks" ? latest : source
  const definitions = new Map<string, Definition>()
  for (const [name, schema] of Shapes.of(source)) {
    definitions.set(name, define(name, "model", revision, schema))
  }
  for (const [name, schema] of Messages.of(source)) {
    definitions.set(name, define(name, "message", revision, schema))
  }
  for (const [name, { schema, read, write }] of Envelope.of(source)) {
    definitions.set(name, { name, kind: "envelope", schema, read, write: (value) => Result.succeed(write(value)) })
  }
  return definitions
}

const built = new Map<Source, ReadonlyMap<string, Definition>>()

/** Every definition of a revision's official schema, by its official name. `"tasks"` stands for the tasks extension. */
export const definitions = (source: Source): ReadonlyMap<string, Definition> => {
  let found = built.get(source)
  if (found === undefined) built.set(source, found = build(source))
  return found
}
