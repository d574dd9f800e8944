/**
 * Loaded into each server before its program: the benchmark asks for its memory, and the server ends with the benchmark. So the
 * programs themselves are what users write.
 */
const collect = (globalThis as { readonly gc?: () => void }).gc

/** Collects until nothing more goes: what ended is often let go of a few turns of the event loop later. */
const settle = async (): Promise<NodeJS.MemoryUsage> => {
  let before = Number.POSITIVE_INFINITY
  for (let round = 0; round < 20; round++) {
    collect?.()
    await new Promise((later) => setTimeout(later, 25))
    const { heapUsed } = process.memoryUsage()
    if (round > 2 && before - heapUsed < 10_000) break
    before = heapUsed
  }
  return process.memoryUsage()
}

process.on("message", () => void settle().then((usage) => process.send?.(usage)))
process.on("disconnect", () => process.exit())
