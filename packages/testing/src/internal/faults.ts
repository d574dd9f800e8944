/**
 * Selects the faults of each exchange.
 */
import type { Fault, On, Rule } from "../Scenario.ts"

/** The fault with a tag. */
export type FaultOf<Tag extends Fault["_tag"]> = Extract<Fault, { readonly _tag: Tag }>

export type Faults = ReturnType<typeof makeFaults>

/** The faults of one exchange. */
export const makeFaults = (all: ReadonlyArray<Fault>) => {
  /** The first fault with that tag, if there is one. */
  const get = <Tag extends Fault["_tag"]>(tag: Tag): FaultOf<Tag> | undefined =>
    all.find((fault): fault is FaultOf<Tag> => fault._tag === tag)

  const has = (tag: Fault["_tag"]): boolean => get(tag) !== undefined

  return { get, has }
}

/** Counts the exchanges of each kind. Returns a function that selects the faults that the rules name for the next one. */
export const faultSchedule = (rules: ReadonlyArray<Rule>): (on: Exclude<On, "any">) => Faults => {
  const seen = new Map<On, number>()
  const count = (on: On): number => {
    const n = seen.get(on) ?? 0
    seen.set(on, n + 1)
    return n
  }
  return (on) => {
    const at: Record<string, number> = { any: count("any"), [on]: count(on) }
    return makeFaults(rules.flatMap((rule) => {
      const n = at[rule.on]
      return n !== undefined && n >= rule.nth && n < rule.nth + rule.times ? [rule.fault] : []
    }))
  }
}

/** The kind of exchange that a message of the client begins. */
export const exchangeKind = (message: unknown): "handshake" | "request" | "notification" => {
  const { id, method } = (typeof message === "object" && message !== null ? message : {}) as {
    readonly id?: unknown
    readonly method?: unknown
  }
  if (method === "server/discover" || method === "initialize" || method === "notifications/initialized") {
    return "handshake"
  }
  return typeof method === "string" && id !== undefined ? "request" : "notification"
}
