/** What a process holds, to be compared with what it held before. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { queryObjects } from "node:v8"
import { turn } from "../connection/support.ts"

/** The class of fibers, which nobody exports. */
const FiberClass = (() => {
  const fiber = Effect.runFork(Effect.never)
  Effect.runFork(Fiber.interrupt(fiber))
  return fiber.constructor
})()

/** The fibers that the heap has, once nothing more goes, and what keeps the process alive. */
export const census = Effect.gen(function*() {
  let fibers = Infinity
  // Each look collects the garbage of the whole heap, and takes long.
  for (let round = 0; round < 8; round++) {
    for (let turns = 0; turns < 5; turns++) yield* turn
    const found = queryObjects(FiberClass, { format: "count" })
    if (found >= fibers) break
    fibers = found
  }
  const resources = process.getActiveResourcesInfo().filter((name) => /Process|Pipe|Socket|TCP|Timeout/.test(name))
  const listeners = process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
  return { fibers, resources: resources.toSorted(), listeners }
})
