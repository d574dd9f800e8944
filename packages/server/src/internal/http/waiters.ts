import * as Effect from "effect/Effect"

/** The fibers that wait for something to become so. Whoever makes it so wakes them. */
export class Waiters {
  readonly #resumes = new Set<(effect: Effect.Effect<void>) => void>()

  /** Succeeds when they are woken; at once where it is so already. */
  until(isSo: () => boolean): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (isSo()) return resume(Effect.void)
      this.#resumes.add(resume)
      return Effect.sync(() => void this.#resumes.delete(resume))
    })
  }

  wake(): void {
    if (this.#resumes.size === 0) return
    const resumes = [...this.#resumes]
    this.#resumes.clear()
    for (const resume of resumes) resume(Effect.void)
  }
}
