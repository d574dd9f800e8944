/**
 * Fits the input schema of a tool to the API of a provider of models, which accepts a part of JSON Schema.
 *
 * A schema is from a server and untrusted. The work is linear in its size: each keyword, member and item costs a unit, a
 * long text costs more, and the copies that replace references may cost four times the schema together.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Tool } from "@skein/protocol/Tool"
import { quote } from "@skein/protocol/Text"
import { keep } from "./keepSchema.ts"
import { gather, merged, propertiesOf } from "./mergedSchema.ts"
import { restoreNames } from "./propertyNames.ts"
import { type Form, type Rules, rulesOf } from "./providerRules.ts"
import { reduce } from "./reduceSchema.ts"
import { type Change, change, type Entries, spend, unitsOf, type Work } from "./schemaWork.ts"

/** A fitted schema. */
export interface Fitted {
  readonly schema: Tool["inputSchema"]
  /** The changes, at most 64. */
  readonly changes: ReadonlyArray<Change>
  /** How many changes are not in `changes`. */
  readonly more: number
  /** The description with a list of what was weakened, at most 16 parts. */
  readonly describe: (description: string | undefined) => string | undefined
  /** Replaces the names of properties that were changed by those of the server. */
  readonly restore: (args: object) => object
}

/** How many units of work one schema may cost, whatever its size. */
const maxWork = 10_000
/** How many weakened parts the description of a tool lists. */
const maxNotes = 16

const annotations = new Set(["title", "description", "$schema", "$id", "$defs", "definitions", "$comment", "examples"])

const note = (changes: ReadonlyArray<Change>, more: number): string | undefined => {
  const weakened = changes.flatMap(({ at, weakened }) => weakened === undefined ? [] : [{ at, weakened }])
  if (weakened.length === 0) return undefined
  const lines = weakened.slice(0, maxNotes).map(({ at, weakened }) =>
    `- ${at === "" ? "the arguments" : at}: ${weakened}`
  )
  const others = weakened.length - lines.length + more
  return [
    "The schema of the arguments is simplified. The server also requires or accepts:",
    ...lines,
    ...others === 0 ? [] : [`- and ${others} more, which errors of the tool name`]
  ].join("\n")
}

const whole = (work: Work): JsonObject => {
  const { root, rules } = work
  work.open.add(root)
  if (rules.isSubset) return reduce(work, root, "", 0, { target: root, up: undefined })
  const composed = ["$ref", "allOf", "anyOf", "oneOf"].filter((key) => Object.hasOwn(root, key))
  let base: JsonObject = root
  if (composed.length > 0) {
    const all = merged()
    gather(work, root, all, "", true, 0, { target: root, up: undefined })
    for (const key of composed) if (key === "allOf" || key === "$ref") change(work, "", `${key} at the root`)
    // A closed root would refuse the properties of its parts.
    all.rest.delete("additionalProperties")
    all.rest.delete("unevaluatedProperties")
    base = {
      ...Object.fromEntries(all.rest),
      properties: Object.fromEntries(Array.from(propertiesOf(all), ([name, { schema }]) => [name, schema])),
      ...all.required.size === 0 ? undefined : { required: Array.from(all.required) }
    }
  }
  if (base["type"] !== "object") change(work, "", "a root that is not of the type object")
  const entries: Entries = [["type", "object"]]
  let hasProperties = false
  for (const key of Object.keys(base)) {
    if (!spend(work)) break
    if (key === "type") continue
    if (rules.root !== undefined ? rules.root.has(key) : !rules.refusedAtRoot.has(key)) {
      hasProperties ||= key === "properties"
      entries.push([key, base[key]])
    } else if (!annotations.has(key)) {
      change(
        work,
        "",
        `${key} at the root`,
        base[key] === false ? undefined : `the rule ${quote(key, 32)} of the server`
      )
    }
  }
  if (!hasProperties) entries.push(["properties", {}])
  return keep(work, Object.fromEntries(entries), "", 0) as JsonObject
}

const cache = new WeakMap<object, Map<Form, Fitted>>()

/**
 * Fits the input schema of a tool to a provider. The result for the same object is stored, so that each toolkit does not
 * repeat the work.
 *
 * @example
 * const { schema, describe } = fitSchema(tool.inputSchema, "gemini")
 */
export const fitSchema = (schema: Tool["inputSchema"], form: Form): Fitted => {
  const stored = cache.get(schema)?.get(form)
  if (stored !== undefined) return stored
  const fitted = form === "none" ? unchanged(schema) : fitNow(schema, rulesOf[form])
  const forms = cache.get(schema) ?? new Map<Form, Fitted>()
  cache.set(schema, forms.set(form, fitted))
  return fitted
}

const unchanged = (schema: Tool["inputSchema"]): Fitted => ({
  schema,
  changes: [],
  more: 0,
  describe: (description) => description,
  restore: (args) => args
})

const fitNow = (root: JsonObject, rules: Rules): Fitted => {
  const work: Work = {
    rules,
    root,
    left: Math.min(maxWork, 4 * unitsOf(root, maxWork) + 1_000),
    changes: [],
    more: 0,
    originals: new Map(),
    renamed: new Map(),
    open: new Set()
  }
  // The root of each form has this type.
  const schema = whole(work) as Tool["inputSchema"]
  const text = note(work.changes, work.more)
  return {
    schema,
    changes: work.changes,
    more: work.more,
    describe: (description) =>
      text === undefined ? description : description === undefined ? text : `${description}\n\n${text}`,
    restore: (args) => work.originals.size === 0 ? args : restoreNames(args, work.originals)
  }
}
