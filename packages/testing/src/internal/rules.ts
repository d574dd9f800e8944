/**
 * Which faults happen to which exchange.
 */
import type { Fault, On, Rule } from "../Script.ts"

/** The faults of one exchange. */
export class Faults {
  readonly all: ReadonlyArray<Fault>

  constructor(all: ReadonlyArray<Fault>) {
    this.all = all
  }

  /** The first fault of a kind, if there is one. */
  get<Tag extends Fault["_tag"]>(tag: Tag): Extract<Fault, { readonly _tag: Tag }> | undefined {
    return this.all.find((fault): fault is Extract<Fault, { readonly _tag: Tag }> => fault._tag === tag)
  }

  has(tag: Fault["_tag"]): boolean {
    return this.all.some((fault) => fault._tag === tag)
  }
}

/** Counts the exchanges, and gives each the faults that are meant for it. */
export class Rules {
  readonly #rules: ReadonlyArray<Rule>
  readonly #seen = new Map<On, number>()

  constructor(rules: ReadonlyArray<Rule>) {
    this.#rules = rules
  }

  next(on: Exclude<On, "any">): Faults {
    const at: Record<string, number> = { any: this.#count("any"), [on]: this.#count(on) }
    return new Faults(this.#rules.flatMap((rule) => {
      const n = at[rule.on]
      return n !== undefined && n >= rule.nth && n < rule.nth + rule.times ? [rule.fault] : []
    }))
  }

  #count(on: On): number {
    const n = this.#seen.get(on) ?? 0
    this.#seen.set(on, n + 1)
    return n
  }
}

/** What kind of exchange a message of the client's begins. */
export const kindOf = (message: unknown): "handshake" | "call" | "notice" => {
  const { id, method } = (typeof message === "object" && message !== null ? message : {}) as {
    readonly id?: unknown
    readonly method?: unknown
  }
  if (method === "server/discover" || method === "initialize" || method === "notifications/initialized") {
    return "handshake"
  }
  return typeof method === "string" && id !== undefined ? "call" : "notice"
}
