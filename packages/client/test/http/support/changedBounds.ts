/** Transports with other values of the bounds that are not options. */
import type { Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import { ChangedBounds, type FixedBounds } from "../../../src/internal/http/settings.ts"

export type { FixedBounds }

/** The same transport with other fixed bounds. */
export const withBounds = (transport: Transport, bounds: Partial<FixedBounds>): Transport => ({
  ...transport,
  connect: Effect.provideService(transport.connect, ChangedBounds, bounds),
  connectWith: (mode) => Effect.provideService(transport.connectWith!(mode), ChangedBounds, bounds)
})
