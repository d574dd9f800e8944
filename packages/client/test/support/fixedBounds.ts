/** Clients with other values of the bounds that are not options. */
import * as Effect from "effect/Effect"
import { FixedBounds, fixedBounds } from "../../src/internal/base/fixedBounds.ts"

/** Makes a client with other fixed bounds. */
export const bounded = <A, E, R>(
  bounds: Partial<typeof fixedBounds>,
  client: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => Effect.provideService(client, FixedBounds, { ...fixedBounds, ...bounds })
