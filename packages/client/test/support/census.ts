/** Counts the fibers and handles of a process, for comparison with an earlier count. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { queryObjects } from "node:v8"
import { turn } from "../connection/support.ts"

/** The class of fibers, which `effect` does not export. */
const FiberClass = (() => {
  const fiber = Effect.runFork(Effect.never)
  Effect.runFork(Fiber.interrupt(fiber))
  return fiber.constructor
})()

/** The fibers on the heap once the process is idle, and the handles that keep the process alive. */
export const census = Effect.gen(function*() {
  let fibers = Infinity
  // Each count collects garbage on the whole heap, which is slow.
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
