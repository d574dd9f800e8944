/** The services that the programs about tasks use: a mill that detects repeated orders, and an oven. Both record their calls. */
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

/** The number of cakes in the oven now, and its maximum so far. */
export const oven = { now: 0, most: 0 }

export const bakeOne: Effect.Effect<void> = Effect.ensuring(
  Effect.suspend(() => {
    seen.push("cake")
    oven.most = Math.max(oven.most, ++oven.now)
    return Effect.yieldNow
  }),
  Effect.sync(() => void oven.now--)
)
