/** The tests of the templates, from source. `Projects.test.ts` runs them in created projects. */
import { describe, expect, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { filesOf } from "../src/internal/files.ts"

const templates = join(import.meta.dirname, "../templates")
const read = (path: string): string => readFileSync(join(templates, path), "utf8")

describe("stdio with effects", async () => {
  await import("../templates/stdio/effect/test/server.test.ts")
})
describe("stdio with async functions", async () => {
  await import("../templates/stdio/async/test/server.test.ts")
})
describe("tasks with effects", async () => {
  await import("../templates/tasks/effect/test/server.test.ts")
})
describe("tasks with async functions", async () => {
  await import("../templates/tasks/async/test/server.test.ts")
})
describe("client with effects", async () => {
  await import("../templates/client/effect/test/host.test.ts")
})
describe("client with async functions", async () => {
  await import("../templates/client/async/test/host.test.ts")
})

describe("the templates", () => {
  it("have the same server over stdio and over HTTP, and the same services in both styles", async () => {
    for (const style of ["effect", "async"] as const) {
      const common = { name: "skein-template", style, packageManager: "npm" } as const
      const [http, stdio] = await Promise.all([
        filesOf({ ...common, template: "http" }),
        filesOf({ ...common, template: "stdio" })
      ])
      for (const file of ["src/server.ts", "src/units.ts", "test/server.test.ts"]) {
        expect(http.get(file)).toBe(stdio.get(file))
        expect(http.get(file)).toBe(read(`stdio/${style}/${file}`))
      }
    }
    expect(read("stdio/async/src/units.ts")).toBe(read("stdio/effect/src/units.ts"))
    expect(read("tasks/async/src/warehouse.ts")).toBe(read("tasks/effect/src/warehouse.ts"))
    const image = read("tasks/shared/Dockerfile")
    expect(image.replace(" TASKS_FILE=/data/tasks.db", "").replace(/RUN mkdir \/data.*\nVOLUME \/data\n/, ""))
      .toBe(read("http/shared/Dockerfile"))
    expect(read("tasks/shared/_dockerignore")).toBe(read("http/shared/_dockerignore"))
  })
})
