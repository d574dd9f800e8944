/** The resources of a process, for comparison with an earlier count. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { queryObjects } from "node:v8"
import { turn } from "../connection/support.ts"

/** The class of fibers, which Effect does not export. */
const FiberClass = (() => {
  const fiber = Effect.runFork(Effect.never)
  Effect.runFork(Fiber.interrupt(fiber))
  return fiber.constructor
})()

/** The fibers on the heap, once their number no longer falls, and the handles that keep the process alive. */
export const census = Effect.gen(function*() {
  let fibers = Infinity
  // Each round collects the garbage of the whole heap several times, and takes about a second. The fiber that counts
  // remains, so that a count of one is the last.
  for (let round = 0; round < 8; round++) {
    for (let turns = 0; turns < 5; turns++) yield* turn
    const found = queryObjects(FiberClass, { format: "count" })
    if (found >= fibers) break
    fibers = found
    if (found === 1) break
  }
  const resources = process.getActiveResourcesInfo().filter((name) => /Process|Pipe|Socket|TCP|Timeout/.test(name))
  const listeners = process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
  return { fibers, resources: resources.toSorted(), listeners }
})

/** The resources that the process has now and did not have before. */
export const added = (before: ReadonlyArray<string>, now: ReadonlyArray<string>): ReadonlyArray<string> => {
  const left = [...before]
  return now.filter((name) => {
    const at = left.indexOf(name)
    if (at !== -1) left.splice(at, 1)
    return at === -1
  })
}
