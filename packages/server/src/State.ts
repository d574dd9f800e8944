/**
 * State of users and sessions: values that handlers read and change, and that stay between requests.
 *
 * A state is a definition, as a tool is. Its value belongs to the user of a request, which is the authenticated
 * principal, or to the session. No other caller can read or change it: the owner comes from the transport, and nothing in a
 * message can set it. Values are stored in memory until another store is provided: see `StateStore`.
 *
 * | The request                   | `scope: "user"`                                         | `scope: "session"`                                            |
 * | ----------------------------- | ------------------------------------------------------- | ------------------------------------------------------------- |
 * | in a session, with a principal | the value of the principal                              | the value of the session                                      |
 * | in a session, anonymous       | `StateError` `Anonymous`; with `anonymous: "session"` the value of the session | the value of the session               |
 * | stateless, with a principal   | the value of the principal                              | `StateError` `NoSession`; with `stateless: "user"` a value of the principal |
 * | stateless, anonymous          | `StateError` `Anonymous`                                | `StateError` `NoSession`                                      |
 *
 * In the stateless revision a handler runs again in each round of input requests, and so do its updates. Wrap an update
 * before an input request in `once`.
 *
 * @example
 * const cart = State.make("cart", { schema: Schema.Array(Schema.String), initial: [] })
 * const add = Tool.layer(Tool.make("add", { input: { item: Schema.String } }), ({ item }) =>
 *   Effect.map(cart.update((items) => [...items, item]), (items) => `${items.length} items`))
 * const show = Tool.async(Tool.make("show"), async (_, { state }) => (await state(cart).get()).join("\n"))
 */
import * as JsonForm from "@skein/protocol/JsonForm"
import * as Schema from "effect/Schema"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import {
  type CheckedSchema,
  type Codec,
  jsonCodec,
  makeState,
  type NoSchema,
  type Options,
  standardCodec,
  type State
} from "./internal/state/makeState.ts"

export type { AsyncState, CheckedSchema, NoSchema, Options, Services, State } from "./internal/state/makeState.ts"

const codecOf = <A>(name: string, schema: Options<A>["schema"]): Codec<A> => {
  if (schema === undefined) return jsonCodec()
  if (!Schema.isSchema(schema)) return standardCodec(name, schema)
  const codec = Schema.toCodecJson(schema as Schema.ConstraintCodec<A, unknown>)
  return { encode: JsonForm.encodeWith(Schema.encodeUnknownResult(codec)), decode: Schema.decodeUnknownResult(codec) }
}

/**
 * Defines a state. The name must be unique in a server: two states of one scope and name share their values. If the
 * schema changes so that a stored value does not match, operations fail with `InvalidValue`, and `remove` repairs it.
 *
 * @example
 * const seen = State.make("seen", { schema: Schema.Int, initial: 0, scope: "session" })
 * const cart = State.make("cart", { schema: z.array(z.string()), initial: [] })
 */
export const make = <A, In = A>(
  name: string,
  options:
    & Options<A>
    & { readonly schema?: Schema.ConstraintCodec<A, unknown> | StandardSchemaV1<In, A> | NoSchema | undefined }
    & CheckedSchema<A, In>
): State<A> => makeState(name, options, codecOf<A>(name, options.schema))
