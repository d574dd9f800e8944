/**
 * The names of tools, arguments and schemas, within the characters that clients and models accept.
 */
import { cut } from "@skein/protocol/Text"
import type { Operation } from "./operations.ts"

/** The longest name: models of several providers refuse longer names of tools and arguments. */
export const maxNameChars = 64

/** Makes a text a name of `A-Z a-z 0-9 _ . -`, 1 to 64 characters. */
export const toName = (text: string, otherwise: string): string =>
  cut(text.replaceAll(/[^\w.-]+/g, "_").replaceAll(/^[_.-]+|[_.-]+$/g, ""), maxNameChars) || otherwise

/** Names that are each taken once. */
export class Names {
  readonly #taken = new Set<string>()

  /** Takes a name. If it is taken, it gets the first suffix of these that makes it unique, then a number. */
  take(name: string, ...suffixes: ReadonlyArray<string>): string {
    const free = ["", ...suffixes].map((suffix) => withSuffix(name, suffix)).find((each) => !this.#taken.has(each))
    let found = free
    for (let count = 2; found === undefined; count++) {
      const numbered = withSuffix(name, `_${count}`)
      if (!this.#taken.has(numbered)) found = numbered
    }
    this.#taken.add(found)
    return found
  }
}

const withSuffix = (name: string, suffix: string): string => cut(name, maxNameChars - suffix.length) + suffix

/** The name of an operation: its `operationId`, else its method and path, `get_pets_petId`. */
export const nameOf = ({ id, method, path }: Operation): string =>
  toName(id ?? `${method.toLowerCase()}_${path.slice(1).replaceAll(/[{}]/g, "")}`, method.toLowerCase())

/** The title of an operation for people: its summary if it is short. */
export const titleOf = ({ summary }: Operation): string | undefined =>
  summary !== undefined && summary.length <= 100 ? summary.replace(/\.$/, "") : undefined
