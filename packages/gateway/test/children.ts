/** Child processes behind a proxy, and what they have written about themselves. */
import * as Client from "@skein/client/Client"
import * as Stdio from "@skein/client/Stdio"
import type * as Proxy from "@skein/gateway/Proxy"
import type * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** The path of a fixture. */
export const fixture = (name: string): string => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url))

/** Returns true if a process does not exist, or is a zombie that its parent has not reaped. */
export const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return process.platform === "linux" && /\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return true
  }
}

/** Waits until a condition holds. */
export const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.gen(function*() {
    while (!condition()) yield* Effect.sleep(5)
  })

/** The file of children. All that are left are killed with its scope. */
export class Journal {
  readonly #folder = mkdtempSync(join(tmpdir(), "skein-children-"))
  readonly path = join(this.#folder, "journal")

  static readonly make: Effect.Effect<Journal, never, Scope.Scope> = Effect.acquireRelease(
    Effect.sync(() => new Journal()),
    (journal) => Effect.sync(() => journal.#remove())
  )

  get lines(): ReadonlyArray<string> {
    return existsSync(this.path) ? readFileSync(this.path, "utf8").split("\n").slice(0, -1) : []
  }

  count(line: string): number {
    return this.lines.filter((other) => other === line).length
  }

  /** Waits for a line. */
  until(line: string): Effect.Effect<void> {
    return until(() => this.count(line) > 0)
  }

  /** The process ids in the lines about `started` and `grandchild`, in their order. */
  pids(what: "started" | "grandchild"): ReadonlyArray<number> {
    return this.lines.filter((line) => line.startsWith(`${what} `)).map((line) => Number(line.split(" ")[1]))
  }

  /** All processes that were started. */
  get all(): ReadonlyArray<number> {
    return [...this.pids("started"), ...this.pids("grandchild")]
  }

  #remove(): void {
    for (const pid of this.all) if (!isGone(pid)) process.kill(pid, "SIGKILL")
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** The effect that makes a client of a child, as the source of a proxy. */
export const child = (
  { path }: Journal,
  revision: Revision.Revision,
  options: Client.Options = {},
  traits: ReadonlyArray<string> = []
): Proxy.Source<Scope.Scope> => {
  const args = ["--conditions=@skein/source", fixture("child.ts"), path, ...traits]
  return Client.make(Stdio.transport({ command: process.execPath, args, stderr: "ignore" }), {
    label: "child",
    ...options,
    revisions: [revision]
  })
}
