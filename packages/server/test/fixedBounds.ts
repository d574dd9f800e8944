/** Servers with other values of the bounds that are not options. */
import * as Layer from "effect/Layer"
import { Bounds, type FixedBounds, fixedBounds } from "../src/internal/base/fixedBounds.ts"

/** Makes the bounds that a server is provided with. */
export const bounds = (changed: Partial<FixedBounds>): Layer.Layer<never> =>
  Layer.succeed(Bounds, { ...fixedBounds, ...changed })
