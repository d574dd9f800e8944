/**
 * Reads the keywords of one schema. A keyword with a value of the wrong type is an error: "Schemas MUST be valid
 * according to their declared or default dialect" (2026-07-28).
 */
import { isObject, type JsonObject } from "../../JsonRpc.ts"
import { clip, cut } from "../../Text.ts"
import { pathTo, type Rule, type SchemaDocument, type SchemaNode, type SchemaPath } from "./schemaNode.ts"
import type { Test } from "./automaton.ts"

/**
 * Compiles one keyword, or several that depend on each other, to a rule. Returns `undefined` if the schema does not
 * have the keyword.
 */
export type Keyword = (keywords: KeywordReader) => Rule | undefined

/** A keyword with the names that it reads. It is compiled for the schemas that have one of the names. */
export type NamedKeyword = readonly [names: ReadonlyArray<string>, keyword: Keyword]

/** The keywords of one schema. */
export class KeywordReader {
  readonly schema: JsonObject
  readonly node: SchemaNode
  readonly document: SchemaDocument
  readonly path: SchemaPath

  constructor(schema: JsonObject, node: SchemaNode, document: SchemaDocument, path: SchemaPath) {
    this.schema = schema
    this.node = node
    this.document = document
    this.path = path
  }

  /** Returns the value of a keyword, or `undefined` where it is absent. Throws where it is of the wrong type. */
  read<A>(keyword: string, is: (value: unknown) => value is A, kind: string): A | undefined {
    const value = Object.hasOwn(this.schema, keyword) ? this.schema[keyword] : undefined
    if (value === undefined || is(value)) return value
    return this.document.refuse(`${keyword} must be ${kind}`, this.path)
  }

  number(keyword: string): number | undefined {
    return this.read(keyword, (value): value is number => Number.isFinite(value), "a number")
  }

  count(keyword: string): number | undefined {
    const isCount = (value: unknown): value is number => Number.isInteger(value) && value as number >= 0
    return this.read(keyword, isCount, "an integer of at least 0")
  }

  texts(keyword: string): ReadonlyArray<string> | undefined {
    return this.read(keyword, areTexts, "a list of strings")
  }

  schemaAt(keyword: string): SchemaNode | undefined {
    if (!Object.hasOwn(this.schema, keyword)) return undefined
    return this.document.node(this.schema[keyword], pathTo(this.path, keyword))
  }

  /** Records that a schema applies to the same value as this one, and returns it. */
  inPlace(node: SchemaNode): SchemaNode {
    this.node.inPlace.push(node)
    return node
  }

  list(keyword: string): ReadonlyArray<SchemaNode> | undefined {
    const schemas = this.read(keyword, isFilled, "a list of schemas that is not empty")
    const path = pathTo(this.path, keyword)
    return schemas?.map((schema, index) => this.document.node(schema, pathTo(path, String(index))))
  }

  entries(keyword: string): ReadonlyArray<readonly [key: string, node: SchemaNode]> | undefined {
    const schemas = this.read(keyword, isObject, "an object of schemas")
    if (schemas === undefined) return undefined
    const path = pathTo(this.path, keyword)
    return Object.entries(schemas).map(([key, schema]) => [key, this.document.node(schema, pathTo(path, key))])
  }

  pattern(source: string): Test {
    try {
      return this.document.patterns.compile(source)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      return this.document.refuse(`The pattern ${quote(source)} cannot be used (${reason})`, this.path)
    }
  }
}

export const areTexts = (value: unknown): value is ReadonlyArray<string> =>
  Array.isArray(value) && value.every((item) => typeof item === "string")
export const isFilled = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value) && value.length > 0
export const isList = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value)
export const isText = (value: unknown): value is string => typeof value === "string"
export const isBoolean = (value: unknown): value is boolean => typeof value === "boolean"

// The most characters of a value of the schema in an error message.
const maxQuoted = 200

/**
 * Writes a value of the schema for an error message, as JSON of at most 200 characters. It reads only as much of the
 * value: a large value may occur in many messages.
 */
export const quote = (value: unknown): string => clip(write(value, maxQuoted + 1), maxQuoted)

const write = (value: unknown, room: number): string => {
  if (typeof value === "string") return JSON.stringify(cut(value, room))
  if (typeof value !== "object" || value === null) return String(value)
  // `for … in` would list all indices of an array.
  const keys = Array.isArray(value) ? undefined : Object.keys(value)
  const parts = keys ?? value as ReadonlyArray<unknown>
  let text = keys === undefined ? "[" : "{"
  for (let index = 0; index < parts.length && text.length <= room; index++) {
    if (index > 0) text += ","
    if (keys === undefined) text += write(parts[index], room - text.length)
    else {
      text += `${write(keys[index], room - text.length)}:`
      text += write((value as JsonObject)[keys[index]!], room - text.length)
    }
  }
  return text + (keys === undefined ? "]" : "}")
}
