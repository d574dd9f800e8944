/**
 * Who waits for changes of a task. A listener is called once for the changes of one turn, never within a transaction.
 */

/** See the module's text. A task that nobody listens to costs nothing. */
export class Notices {
  readonly #listeners = new Map<string, Set<() => void>>()
  readonly #changed = new Set<string>()
  readonly #failed: (error: unknown) => void
  #due = false

  /** `failed` is told what a listener throws; the others are called nevertheless. */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed
  }

  /** Gives what ends it. */
  listen(id: string, listener: () => void): () => void {
    // A listener that is given twice is called twice.
    const entry = () => listener()
    const listeners = this.#listeners.get(id)
    if (listeners === undefined) this.#listeners.set(id, new Set([entry]))
    else listeners.add(entry)
    return () => {
      const listeners = this.#listeners.get(id)
      listeners?.delete(entry)
      if (listeners?.size === 0) this.#listeners.delete(id)
    }
  }

  /** A task has changed. */
  tell(id: string): void {
    if (!this.#listeners.has(id)) return
    this.#changed.add(id)
    this.#plan()
  }

  /** Any task may have changed. */
  tellAll(): void {
    for (const id of this.#listeners.keys()) this.#changed.add(id)
    if (this.#changed.size > 0) this.#plan()
  }

  #plan(): void {
    if (this.#due) return
    this.#due = true
    queueMicrotask(() => {
      this.#due = false
      const changed = [...this.#changed]
      this.#changed.clear()
      for (const id of changed) {
        for (const listener of this.#listeners.get(id) ?? []) {
          try {
            listener()
          } catch (error) {
            this.#failed(error)
          }
        }
      }
    })
  }

  /** How many tasks are listened to. */
  get size(): number {
    return this.#listeners.size
  }
}
