/**
 * Identifiers for the names of a server. They consist of ASCII letters and digits, and are unique.
 */
import { cut } from "@skein/protocol/Text"

// Names with a meaning in the generated module, or in the types that it uses.
const reservedTypes: ReadonlyArray<string> = [
  "Array",
  "Caller",
  "Client",
  "ClientError",
  "Effect",
  "Number",
  "Object",
  "ReadonlyArray",
  "Record",
  "Result",
  "Schema",
  "String",
  "Symbol",
  "ToolFailed",
  "UriTemplate"
]

// How many characters of a name an identifier has.
const maxLength = 64

const words = (name: string): ReadonlyArray<string> =>
  cut(name, 4 * maxLength).match(/[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])|[A-Z]/g) ?? []

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

/** `get_weather` as `GetWeather`. A name without ASCII letters and digits is `otherwise`. */
export const pascal = (name: string, otherwise: string): string => {
  const joined = cut(words(name).map((word) => capital(word.toLowerCase())).join(""), maxLength)
  return joined === "" ? otherwise : /^\d/.test(joined) ? `${otherwise}${joined}` : joined
}

/** `get_weather` as `getWeather`. */
export const camel = (name: string, otherwise: string): string => {
  const joined = pascal(name, capital(otherwise))
  return joined.charAt(0).toLowerCase() + joined.slice(1)
}

/**
 * Gives out identifiers, each once. The second of two equal names gets the number 2. The identifiers depend on the order
 * of the names, which is that of the server.
 */
export class Names {
  readonly #taken: Set<string>
  /** The number to try next for a name, so that many equal names do not try all earlier numbers again. */
  readonly #next = new Map<string, number>()

  constructor(taken: Iterable<string> = []) {
    this.#taken = new Set(taken)
  }

  /** The first free identifier of `name`, `name2`, `name3` and so on, with each of the endings. */
  take(name: string, endings: ReadonlyArray<string> = [""]): string {
    const key = [name, ...endings].join(" ")
    for (let number = this.#next.get(key) ?? 1;; number++) {
      const candidate = number === 1 ? name : `${name}${number}`
      if (endings.some((ending) => this.#taken.has(candidate + ending))) continue
      for (const ending of endings) this.#taken.add(candidate + ending)
      this.#next.set(key, number + 1)
      return candidate
    }
  }
}

/** The identifiers of types and schemas in a generated module. */
export const typeNames = (): Names => new Names(reservedTypes)
