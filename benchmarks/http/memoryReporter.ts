/**
 * Preloaded into each server process: reports its memory to the benchmark on request, and exits with the benchmark. So
 * the server programs contain only the code that a user would write.
 */
const collect = (globalThis as { readonly gc?: () => void }).gc

/**
 * Collects garbage until the heap stops shrinking. Closed objects are often released a few turns of the event loop
 * later.
 */
const collectGarbage = async (): Promise<NodeJS.MemoryUsage> => {
  let before = Number.POSITIVE_INFINITY
  for (let round = 0; round < 20; round++) {
    collect?.()
    await new Promise((resolve) => setTimeout(resolve, 25))
    const { heapUsed } = process.memoryUsage()
    if (round > 2 && before - heapUsed < 10_000) break
    before = heapUsed
  }
  return process.memoryUsage()
}

// Workers receive the messages of their server, too.
process.on("message", (message) => {
  if (message === "memory") void collectGarbage().then((usage) => process.send?.(usage))
})
process.on("disconnect", () => process.exit())
