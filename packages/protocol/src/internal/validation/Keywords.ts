/**
 * Reads the keywords of one schema. "Schemas MUST be valid according to their declared or default dialect" (2026-07-28): one whose
 * value is of a wrong kind is an error.
 */
import { isObject, type JsonObject } from "../../JsonRpc.ts"
import type { Document, Node, Place, Rule } from "./Node.ts"
import * as Pattern from "./Pattern.ts"

/** What keywords become, if they are there. */
export type Part = (keywords: Keywords) => Rule | undefined

/** The keywords of one schema, while they are read. */
export class Keywords {
  readonly schema: JsonObject
  readonly node: Node
  readonly document: Document
  readonly place: Place

  constructor(schema: JsonObject, node: Node, document: Document, place: Place) {
    this.schema = schema
    this.node = node
    this.document = document
    this.place = place
  }

  /** The value of a keyword, if it is there; of a wrong kind it is an error. */
  read<A>(keyword: string, is: (value: unknown) => value is A, kind: string): A | undefined {
    const value = Object.hasOwn(this.schema, keyword) ? this.schema[keyword] : undefined
    if (value === undefined || is(value)) return value
    return this.document.refuse(`${keyword} must be ${kind}`, this.place)
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

  schemaAt(keyword: string): Node | undefined {
    if (!Object.hasOwn(this.schema, keyword)) return undefined
    return this.document.node(this.schema[keyword], [...this.place, keyword])
  }

  /** A schema that is applied to the same value as this one. */
  same(node: Node): Node {
    this.node.same.push(node)
    return node
  }

  list(keyword: string): ReadonlyArray<Node> | undefined {
    const schemas = this.read(keyword, isFilled, "a list of schemas that is not empty")
    return schemas?.map((schema, index) => this.document.node(schema, [...this.place, keyword, String(index)]))
  }

  map(keyword: string): ReadonlyMap<string, Node> | undefined {
    const schemas = this.read(keyword, isObject, "an object of schemas")
    if (schemas === undefined) return undefined
    return new Map(
      Object.entries(schemas).map(([key, schema]) => [key, this.document.node(schema, [...this.place, keyword, key])])
    )
  }

  pattern(source: string): Pattern.Test {
    this.document.properties += source.split(/\\p/i).length - 1
    if (this.document.properties > maxProperties && !this.document.nativePatterns) {
      return this.document.refuse(`The patterns name more than ${maxProperties} properties of Unicode`, this.place)
    }
    try {
      return Pattern.compile(source, this.document.nativePatterns)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      return this.document.refuse(`The pattern ${quote(source)} cannot be used (${reason})`, this.place)
    }
  }
}

// Each takes the engine as long as a hundred letters do, or more.
const maxProperties = 256

export const areTexts = (value: unknown): value is ReadonlyArray<string> =>
  Array.isArray(value) && value.every((item) => typeof item === "string")
export const isFilled = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value) && value.length > 0
export const isList = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value)
export const isText = (value: unknown): value is string => typeof value === "string"
export const isBoolean = (value: unknown): value is boolean => typeof value === "boolean"

/** A text in a message, at no more than a bounded length. */
export const quote = (value: unknown): string => {
  const text = JSON.stringify(value)
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
