/**
 * The official definitions of each revision: every name in the `definitions` or `$defs` of the official JSON Schema,
 * with the schema of the model that implements it. For tests and tooling; messages do not pass through this module. The
 * definitions of a revision are built on first use.
 *
 * The oracle tests check two properties of each definition:
 * - Written values are accepted: generate a value from `schema`, `write` it, and the official schema accepts the result
 *   (unless `write` fails because the revision cannot represent the value).
 * - Allowed values are read: generate a value from the official schema, and `read` succeeds.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Codec from "@skein/protocol/Codec"
import { envelopes } from "./Envelopes.ts"
import { messages, type Source } from "./Messages.ts"
import { shapes } from "./Shapes.ts"
import { latest, type Revision } from "@skein/protocol/Revision"

export type { Source }

/** The implementation of one official definition in one revision. */
export interface Definition {
  /** The official name in this revision. */
  readonly name: string
  /**
   * The implementation: `model` is a schema of the model; `message` is a request, a notification or a response, built
   * from the method table; `envelope` is a JSON-RPC message, read and written by `JsonRpc`.
   */
  readonly kind: "model" | "message" | "envelope"
  /** The schema of the model, to generate values from. Its `Type` equals its `Encoded`, and it needs no services. */
  readonly schema: Schema.Codec<unknown>
  /**
   * Writes a value of the model in the official shape of this revision. Fails where the revision cannot represent it.
   */
  readonly write: (
    value: unknown
  ) => Result.Result<unknown, { readonly _tag: "Unrepresentable"; readonly message: string }>
  /** Reads a value of the official shape: lifts and validates it. The error is one line that names the path. */
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
  for (const [name, schema] of shapes(source)) {
    definitions.set(name, define(name, "model", revision, schema))
  }
  for (const [name, schema] of messages(source)) {
    definitions.set(name, define(name, "message", revision, schema))
  }
  for (const [name, { schema, read, write }] of envelopes(source)) {
    definitions.set(name, { name, kind: "envelope", schema, read, write: (value) => Result.succeed(write(value)) })
  }
  return definitions
}

const built = new Map<Source, ReadonlyMap<string, Definition>>()

/**
 * Returns every definition of a revision's official schema, by its official name. The source `"tasks"` is the extension
 * `io.modelcontextprotocol/tasks`.
 *
 * @example
 * Definitions.definitions("2025-11-25").get("Tool")!.read({ name: "add", inputSchema: { type: "object" } })
 */
export const definitions = (source: Source): ReadonlyMap<string, Definition> => {
  let found = built.get(source)
  if (found === undefined) built.set(source, found = build(source))
  return found
}
