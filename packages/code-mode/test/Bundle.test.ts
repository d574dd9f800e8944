/** A server with code mode that `skein build` has made one file of, in a folder without `node_modules`. */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { cp, rm } from "node:fs/promises"
import { join } from "node:path"
import { asWord, makeProject, type Project, run } from "../../cli/test/develop/project.ts"

let project: Project
let shipped: Project

beforeAll(async () => {
  project = await makeProject({
    "server.ts": `
      import * as CodeMode from "@skein/code-mode/CodeMode"
      import * as McpServer from "@skein/server/McpServer"
      import * as Tool from "@skein/server/Tool"
      import * as Effect from "effect/Effect"
      const six = Tool.make("six", { description: "Returns 6." })
      export const Server = McpServer.layer(
        { name: "numbers", version: "1.0.0" },
        CodeMode.layer({}, Tool.layer(six, () => Effect.succeed("6")))
      )`
  })
  shipped = await makeProject({})
  await rm(join(shipped.folder, "node_modules"))
})

afterAll(async () => {
  await project.remove()
  await shipped.remove()
})

describe("a bundled server", () => {
  it("runs a program, and ends one that does not end", async () => {
    const built = await run(project, ["build", "--json", "server.ts"])
    expect([built.code, built.err]).toEqual([0, ""])
    const { external, file, missing } = JSON.parse(built.out)
    expect([external, missing]).toEqual([[], []])
    await cp(join(project.folder, file), join(shipped.folder, "server.cjs"))
    const execute = (code: string) => {
      const server = asWord([process.execPath, join(shipped.folder, "server.cjs")])
      return run(shipped, ["call", server, "execute", JSON.stringify({ code })])
    }
    const ran = await execute("return 7 * await tools.six()")
    expect(ran.err).toBe("")
    expect(JSON.parse(ran.out)).toEqual({ result: 42 })
    const endless = await execute("for (;;) new Uint8Array(1e6).slice()")
    expect(endless.code).not.toBe(0)
    expect(endless.out + endless.err).toContain("computingTimeout")
  })
})
