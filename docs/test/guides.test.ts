/**
 * Checks that each `ts` block of the guides equals a region of a program, and that each link has a target.
 */
import { describe, expect, it } from "@effect/vitest"
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { type Block, blocksOf, compared, docs, guides, read, readCompared, regionsOf } from "./blocks.ts"

const blocks = guides.flatMap(blocksOf)
const isCompared = ({ info }: Block) => compared.test(info)
const programs = blocks.filter((block) => block.info.startsWith("ts") && !isCompared(block))

/** The headings of a page as GitHub links to them. */
const anchorsOf = (page: string): ReadonlySet<string> =>
  new Set(Array.from(
    page.matchAll(/^#+ (.*)$/gm),
    ([, title = ""]) => title.toLowerCase().replaceAll(/[^\w\- ]/g, "").replaceAll(" ", "-")
  ))

describe("the guides", () => {
  it("show only regions of files in `programs`", () => {
    for (const { guide, info, text } of programs) {
      const [, file = "", region = ""] = /^ts (programs\/[\w./]+)#(\w+)$/.exec(info) ?? []
      expect(file, `${guide}: the info string of a block must name its region: \`\`\`ts programs/x.ts#region`).not.toBe(
        ""
      )
      expect(text, `${guide}: ${info}`).toBe(regionsOf(read(file)).get(region))
    }
  })

  it("show the programs of the comparison as they are", () => {
    const shown = blocks.filter(isCompared)
    expect(shown.length).toBe(2)
    for (const { guide, info, text } of shown) {
      expect(text, `${guide}: ${info}`).toBe(readCompared(compared.exec(info)![1]!))
    }
  })

  it("and the README shows a program of them as it is", () => {
    const [, file = "", region = "", text = ""] = /^```ts docs\/(\S+)#(\w+)\n([^]*?)\n```$/m.exec(read("../README.md"))!
    expect(text).toBe(regionsOf(read(file)).get(region))
    expect(read("../README.md").split("\n").length).toBeLessThanOrEqual(121)
  })

  it("show every region of every program", () => {
    const shown = new Set(programs.map(({ info }) => info))
    const files = readdirSync(join(docs, "programs"), { encoding: "utf8", recursive: true })
    const all = files.filter((name) => name.endsWith(".ts")).map((name) => name.replaceAll("\\", "/")).flatMap((name) =>
      Array.from(regionsOf(read(`programs/${name}`)).keys(), (region) => `ts programs/${name}#${region}`)
    )
    expect(all.filter((region) => !shown.has(region))).toEqual([])
  })

  it("have a test for every program, which `npm run runtimes` runs if it has the package skein", () => {
    const [all, ofRuntimes] = ["test/**/*.test.ts", "test/async/*.test.ts"].map((pattern) =>
      globSync(pattern, { cwd: docs }).map(read).join("\n")
    )
    const untested = readdirSync(join(docs, "programs")).filter((name) => {
      if (!/^\w+\.ts$/.test(name)) return false
      const tests = (/ from "skein/.test(read(`programs/${name}`)) ? ofRuntimes : all)!
      return !tests.includes(`programs/${name}`) && !tests.includes(`"${name.slice(0, -3)}"`)
    })
    expect(untested).toEqual([])
  })

  it("have valid JSON blocks", () => {
    for (const { info, text } of blocks) if (info === "json") expect(JSON.parse(text)).toBeTypeOf("object")
  })

  it("link to existing files and headings", () => {
    const pages = [...guides.map((guide) => join(docs, guide)), join(docs, "../README.md")]
    for (const page of pages) {
      const text = readFileSync(page, "utf8")
      for (const [, target = ""] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(target)) continue
        const [path = "", anchor] = target.split("#")
        const to = path === "" ? page : join(dirname(page), path)
        expect(existsSync(to), `${page}: ${target}`).toBe(true)
        if (anchor !== undefined) {
          expect([...anchorsOf(readFileSync(to, "utf8"))], `${page}: ${target}`).toContain(anchor)
        }
      }
    }
  })

  it("name tests that exist, where a link leads to one", () => {
    const links = guides.flatMap((guide) =>
      Array.from(
        read(guide).matchAll(/\[([^\][]+)\]\((\.\.\/packages\/[^)]+\/test\/[^)]+\.ts)\)/g),
        ([, title = "", file = ""]) => ({ guide, title, file })
      )
    )
    expect(links.length).toBeGreaterThan(50)
    expect(links.filter(({ file, title }) => !read(file).includes(title))).toEqual([])
  })

  it("have a test for each threat to a sign-in, the published attacks included", () => {
    const page = read("tokens-and-threats.md")
    const threats = page.slice(page.indexOf("## Threats to a client"), page.indexOf("## What is not protected"))
    const rows = threats.split("\n").filter((line) => /^- (?!\*\*)/.test(line))
    expect(rows.length).toBeGreaterThan(45)
    expect(rows.filter((row) => !/\(\[[^\]]+\]\(\.\.\/packages\/(?:auth|cli)\/test\/[^)]+\)\)$/.test(row))).toEqual([])
    const published = ["CVE-2025-6514", "GHSA-6x8h-498w-gv8c", "GHSA-rww4-4w9c-7733", "CVE-2026-27124"]
    const classes = ["confused deputy", "redirect URI", "token passthrough", "SSRF", "mix-up", "another resource"]
    expect([...published, ...classes].filter((name) => !threats.includes(name))).toEqual([])
  })

  it("are listed in the index", () => {
    const index = read("README.md")
    expect(guides.filter((guide) => guide !== "README.md" && !index.includes(`](${guide})`))).toEqual([])
  })
})
