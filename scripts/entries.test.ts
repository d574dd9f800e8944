/** The projects in which `npm run pack` imports the modules, and the modules that need an optional peer. */
import { describe, expect, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { needs, projects, projectsOf } from "./entries.ts"
import { publicModules } from "./publicModules.ts"

const root = join(import.meta.dirname, "../packages")

describe("projectsOf", () => {
  it("returns the packages of each line that installs Skein, without options and comments", () => {
    const page = "Text\n```sh\nnpm install --save-dev @skein/cli   # the command\nnpm install zod\nnpm ci\n" +
      "npm install @skein/server effect\nnpm install skein zod\n```\n`npm install @skein/client`\n"
    expect(projectsOf(page)).toEqual(["@skein/cli", "@skein/server effect", "skein zod"])
  })

  it("adds a line for existing projects to each of them", () => {
    expect(projectsOf("npm install @skein/auth oidc-provider # with either")).toEqual([
      "@skein/auth oidc-provider @skein/client effect",
      "@skein/auth oidc-provider @skein/server effect"
    ])
  })
})

describe("projects", () => {
  it("has each line of the READMEs once", () => {
    const all = projects()
    expect(new Set(all).size).toBe(all.length)
    for (const line of ["skein zod", "@skein/server effect", "@skein/testing effect"]) {
      expect(all).toContain(line)
    }
    // The line that is listed as an addition is a line of README.md.
    expect(all).toContain("@skein/auth oidc-provider @skein/server effect")
  })
})

describe.each(Object.entries(needs))("%s needs %s", (module, peer) => {
  const [, folder = "", name] = module.split("/")

  it("which is an optional peer of its package", () => {
    const { peerDependenciesMeta } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as {
      readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
    }
    expect(peerDependenciesMeta?.[peer]).toEqual({ optional: true })
  })

  it("and says so in its doc comment", () => {
    const path = publicModules(join(root, folder)).find((each) => each.name === name)?.path
    const source = readFileSync(join(root, folder, "src", `${path}.ts`), "utf8")
    expect(source.slice(0, source.indexOf("*/"))).toContain(`needs the package \`${peer}\``)
  })
})
