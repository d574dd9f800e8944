import * as Effect from "effect/Effect"

/** What user code gives; what it throws before there is an effect is a defect. */
export const guard = <A, E, R, X>(f: () => Effect.Effect<A, E, R> | X): Effect.Effect<A, E, R> | X => {
  try {
    return f()
  } catch (defect) {
    return Effect.die(defect)
  }
}
