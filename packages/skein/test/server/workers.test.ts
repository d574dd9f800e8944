/** `runHttp({ workers })`: several processes, with one view of their metrics and one file of tasks. */
import { describe, expect, it } from "@effect/vitest"
import { AsyncClient } from "skein/client"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { get } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll } from "vitest"

const folder = mkdtempSync(join(tmpdir(), "skein-workers-"))
const fixture = fileURLToPath(new URL("fixtures/workers.ts", import.meta.url))
const child = spawn(process.execPath, ["--conditions=@skein/source", fixture, join(folder, "tasks.db")], {
  stdio: ["ignore", "ignore", "pipe"]
})
let url: string

beforeAll(async () => {
  for await (const line of createInterface({ input: child.stderr })) {
    const found = /Listening on (\S+)/.exec(line)
    if (found === null) continue
    url = found[1]!
    break
  }
  child.stderr.resume()
})

afterAll(() => {
  child.kill("SIGKILL")
  rmSync(folder, { recursive: true })
})

/** Reads a path on a connection of its own: the workers take turns. */
const read = (path: string) =>
  new Promise<readonly [status: number, text: string]>((resolve, reject) => {
    get(new URL(path, url), { agent: false }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (part: string) => void (text += part))
      response.on("end", () => resolve([response.statusCode!, text]))
    }).on("error", reject)
  })

const textOf = ({ content }: { readonly content: ReadonlyArray<object> }): string =>
  (content[0] as { text: string }).text

describe("the workers of runHttp", { timeout: 120_000 }, () => {
  it("are one server: readiness, metrics and tasks", async () => {
    await using client = await AsyncClient.connect(url)
    for (let n = 0; n < 6; n++) expect(textOf(await client.callTool("pid", {}))).toMatch(/^\d+$/)
    for (let n = 0; n < 2; n++) {
      expect((await read("/readyz"))[0]).toBe(200)
      const [status, text] = await read("/metrics")
      expect(status).toBe(200)
      expect(text).toContain("\ncalls 6\n")
      expect(text.match(/^pid\{worker="[12]"\} \d+$/gm)).toHaveLength(2)
    }
    const baked = await Promise.all(Array.from({ length: 6 }, () => client.callTool("bake", {})))
    for (const result of baked) expect(textOf(result)).toMatch(/^Baked by \d+$/)
  })
})
