/**
 * The parts of JSON Schema that the APIs of the providers accept in the schema of a tool.
 */

/**
 * The form of the schemas that a model receives.
 *
 * - `all`: what every provider below accepts.
 * - `anthropic`: no unions, references or `allOf` at the root, names of properties of 1 to 64 letters, digits, `_`, `.`, `-`.
 * - `openai`: the same root, also without `enum`, `const` and `not`; formats of a list; lists with `items`. It is for
 *   functions that are not strict.
 * - `bedrock`: only `type`, `properties` and `required` at the root, and no references.
 * - `gemini`: the part of OpenAPI 3.0 of `FunctionDeclaration.parameters`.
 * - `none`: the schemas of the servers.
 */
export type Form = "all" | "anthropic" | "bedrock" | "gemini" | "openai" | "none"

/** The parts that a form may have. */
export interface Rules {
  /** Names of properties. */
  readonly names: RegExp
  /** The only keywords of the root; undefined for all but `refusedAtRoot`. */
  readonly root: ReadonlySet<string> | undefined
  readonly refusedAtRoot: ReadonlySet<string>
  /** Whether only the keywords of OpenAPI 3.0 are accepted. */
  readonly isSubset: boolean
  /** Whether references are replaced by what they refer to. */
  readonly inline: boolean
  /** Whether models know `nullable`. */
  readonly hasNullable: boolean
  /** Whether a list must have `items`. */
  readonly needsItems: boolean
  /** The formats of texts; undefined for all. */
  readonly formats: ReadonlySet<string> | undefined
  /** How deep schemas may be nested. */
  readonly maxDepth: number
}

const unions = ["anyOf", "oneOf", "allOf"]

const base: Rules = {
  names: /^[a-zA-Z0-9_.-]{1,64}$/,
  root: undefined,
  refusedAtRoot: new Set(unions),
  isSubset: false,
  inline: false,
  hasNullable: false,
  needsItems: false,
  formats: undefined,
  maxDepth: 64
}

const subset: Rules = { ...base, names: /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/, isSubset: true, inline: true, maxDepth: 16 }

/** The rules of each form. */
export const rulesOf: Readonly<Record<Exclude<Form, "none">, Rules>> = {
  all: subset,
  anthropic: base,
  bedrock: { ...base, inline: true, root: new Set(["type", "properties", "required"]) },
  gemini: { ...subset, hasNullable: true },
  openai: {
    ...base,
    refusedAtRoot: new Set([...unions, "enum", "const", "not"]),
    needsItems: true,
    formats: new Set(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])
  }
}

/** The formats of Gemini by type. */
export const allFormats: Readonly<Record<string, ReadonlyArray<string>>> = {
  string: ["date-time", "enum"],
  number: ["float", "double"],
  integer: ["int32", "int64"]
}

/** The keywords by the type that they are for: kept, or the words for the model in place of them. */
export const typed: Readonly<Record<"array" | "number" | "object" | "string", ReadonlyMap<string, string>>> = {
  string: new Map([
    ["minLength", "keep"],
    ["maxLength", "keep"],
    ["pattern", "keep"],
    ["format", "keep"]
  ]),
  array: new Map([
    ["minItems", "keep"],
    ["maxItems", "keep"],
    ["items", "keep"],
    ["prefixItems", "keep"],
    ["uniqueItems", "no item twice"],
    ["contains", "at least one item of a form of the server"],
    ["minContains", "at least this many items of a form of the server:"],
    ["maxContains", "at most this many items of a form of the server:"],
    ["unevaluatedItems", "further items"]
  ]),
  number: new Map([
    ["minimum", "keep"],
    ["maximum", "keep"],
    ["format", "keep"],
    ["exclusiveMinimum", "greater than"],
    ["exclusiveMaximum", "less than"],
    ["multipleOf", "a multiple of"]
  ]),
  object: new Map([
    ["minProperties", "keep"],
    ["maxProperties", "keep"],
    ["additionalProperties", "properties of any name"],
    ["patternProperties", "properties whose names match patterns of the server"],
    ["unevaluatedProperties", "further properties"],
    ["propertyNames", "names of properties of a form of the server"],
    ["dependentRequired", "properties that require others"],
    ["dependentSchemas", "properties that require others"],
    ["dependencies", "properties that require others"]
  ])
}

/** The keywords that reject values, without those that are handled by name. */
export const constraints: ReadonlySet<string> = new Set([
  ...Object.values(typed).flatMap((keywords) => Array.from(keywords.keys())),
  "const",
  "enum",
  "not",
  "if"
])
