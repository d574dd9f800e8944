/** What the programs about tasks take for granted: a mill that knows an order that it has, an oven, and what they have seen. */
import * as Effect from "effect/Effect"

export const orders = new Map<string, string>()
export const seen: Array<string> = []

export const orderFlour = (kilos: number, key: string): Effect.Effect<string> =>
  Effect.sync(() => {
    seen.push("flour")
    const known = orders.get(key) ?? `spelt, ${kilos} kg`
    orders.set(key, known)
    return known
  })

/** How many cakes are in the oven now, and were at most. */
export const oven = { now: 0, most: 0 }

export const bakeOne: Effect.Effect<void> = Effect.ensuring(
  Effect.suspend(() => {
    seen.push("cake")
    oven.most = Math.max(oven.most, ++oven.now)
    return Effect.yieldNow
  }),
  Effect.sync(() => void oven.now--)
)
