/** The clients of `npm run crash`, and a task that fails although no order may. */
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { check, read } from "./checks.ts"
import { Child } from "./child.ts"
import * as Clients from "./clients.ts"

it("ends the wait for an order whose handler has died, and reports it", { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-failed-"))
  const file = join(folder, "tasks.db")
  // The steps append to a file that is a folder.
  const server = new Child("server.ts", ["--file", file, "--outside", folder])
  try {
    const { url } = (await server.message<{ readonly url: string }>())!
    const order = Effect.flatMap(
      Clients.make({ url, random: Math.random, life: () => 1 }),
      (clients) => Effect.as(clients.order(0), clients.reported.acknowledged)
    )
    const acknowledged = await Effect.runPromise(Effect.scoped(order))
    await server.kill("SIGTERM")
    const { problems } = check(read(file), [], acknowledged, [])
    expect(problems).toContainEqual(
      expect.stringMatching(/^order 0 \(plain, completed, .*\): it says .*failed unexpectedly/)
    )
  } finally {
    await server.kill("SIGKILL")
    rmSync(folder, { recursive: true, force: true })
  }
})
