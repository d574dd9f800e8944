/**
 * Reads the arguments of prompts and the variables of resource templates. Their values are texts on the wire, and an
 * Effect Schema or a Standard Schema decides what a handler receives.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import type { DefinitionError } from "../../DefinitionError.ts"
import { type Codec, type NoObject, reader, type TypeOf } from "./inputSchema.ts"
import { type Definitions, resolve, trySchema } from "./jsonSchema.ts"
import type { Later } from "./standardSchema.ts"

/** Every schema that the types accept. `Checked` names the mistake of a wrong one. */
export type AnyFields = Codec | StandardSchemaV1 | { readonly [name: string]: Codec | StandardSchemaV1 }

/**
 * A type that every schema has, or else a text that the compiler shows: what is wrong with the schema. `Names` are the
 * names that the values may have, and `Value` is the type of a value before it is decoded.
 */
export type Checked<S, Place extends string, Names extends PropertyKey, Value> = S extends Codec
  ? CheckedObject<S["Encoded"], Place, Names, Value>
  : S extends StandardSchemaV1 ? CheckedObject<StandardSchemaV1.InferInput<S>, Place, Names, Value>
  : S extends { readonly [name: string]: Codec } ? CheckedObject<Schema.Struct.Encoded<S>, Place, Names, Value>
  : `The fields of \`${Place}\` are not all Effect Schemas. For another library, pass the schema of the whole object, such as z.object({ … })`

type CheckedObject<A, Place extends string, Names extends PropertyKey, Value> = unknown extends A ? unknown
  : [A] extends [NoObject] ? `The \`${Place}\` must be an object: they have names`
  : [Exclude<keyof A, Names>] extends [never] ? [NotText<A, Value>] extends [never] ? unknown
    : `\`${NotText<A, Value>}\` of \`${Place}\` does not read text: a client sends every value as text`
  : `The template has no variable ${Exclude<keyof A, Names> & string}`

/** The names of the values that do not accept text. `unknown` is the input of schemas that convert, such as z.coerce. */
type NotText<A, Value> = {
  [Name in keyof A]-?: unknown extends A[Name] ? never : A[Name] extends Value ? never : Name & string
}[keyof A]

/** One argument or variable, as clients see it. */
export interface TextField {
  readonly name: string
  readonly title: string | undefined
  readonly description: string | undefined
  readonly required: boolean
  /** The texts of a schema that consists of them. */
  readonly choices: ReadonlyArray<string> | undefined
}

/** Reads named texts by a schema. */
export interface TextReader<out A> {
  /**
   * Describes the fields. Throws if the value is not a schema. A Standard Schema needs its JSON Schema for this.
   */
  readonly describe: () => ReadonlyArray<TextField>
  /** Compiles the function that decodes the values, or returns a message about their faults. */
  readonly compile: () => (values: unknown) => Later<Result.Result<A, string>>
}

/** The fields of a schema, and the function that decodes their values. */
export interface CompiledTexts<out A> {
  readonly fields: ReadonlyArray<TextField>
  readonly decode: ReturnType<TextReader<A>["compile"]>
}

/** Makes the reader of a schema. A value that is not a schema throws in `describe` and in `compile`. */
export const textReader = <S extends AnyFields>(schema: S): TextReader<TypeOf<S>> => {
  const { compile, jsonSchema } = reader(schema)
  return { describe: () => ofJsonSchema(jsonSchema()), compile: compile as TextReader<TypeOf<S>>["compile"] }
}

/** Compiles the reader of a definition. Fails with `InvalidSchema` if it cannot. */
export const compileTexts = <A>(
  kind: DefinitionError["kind"],
  definition: string,
  schema: "arguments" | "variables",
  { compile, describe }: TextReader<A>
): Effect.Effect<CompiledTexts<A>, DefinitionError> =>
  trySchema(kind, definition, schema, () => ({ fields: describe(), decode: compile() }))

const merged = (members: ReadonlyArray<ReadonlyArray<string> | undefined>): ReadonlyArray<string> | undefined =>
  members.length > 0 && members.every((member) => member !== undefined) ? members.flat() : undefined

const ofJsonSchema = ({ $defs, properties, required }: JsonObject): ReadonlyArray<TextField> => {
  const definitions = (isObject($defs) ? $defs : {}) as Definitions
  return Object.entries(isObject(properties) ? properties : {}).map(([name, given]) => {
    // The annotations of a key and of a check are in `allOf`.
    const { allOf, ...own } = isObject(given) ? { ...resolve(given, definitions), ...given } : {}
    const node: JsonObject = Object.assign(own, ...(Array.isArray(allOf) ? allOf : []))
    return {
      name,
      title: textOf(node["title"]),
      description: textOf(node["description"]),
      required: Array.isArray(required) && required.includes(name),
      choices: choicesOf(node, definitions)
    }
  })
}

const textOf = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

/** Returns the texts of a JSON Schema that allows only these. */
const choicesOf = (given: unknown, definitions: Definitions): ReadonlyArray<string> | undefined => {
  if (!isObject(given)) return undefined
  const { anyOf, const: only, enum: values, oneOf } = resolve(given, definitions)
  if (typeof only === "string") return [only]
  if (Array.isArray(values)) return values.every((value) => typeof value === "string") ? values : undefined
  const members = Array.isArray(anyOf) ? anyOf : oneOf
  if (!Array.isArray(members)) return undefined
  // An optional text may be `null` as JSON, but not as an argument. A union that is a member of itself is not followed.
  const texts = members.filter((member) => !isObject(member) || member["type"] !== "null")
  return merged(
    texts.map((member) => isObject(member) && "$ref" in member ? undefined : choicesOf(member, definitions))
  )
}
