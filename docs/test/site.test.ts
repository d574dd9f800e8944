/** The pages of the documentation site. `siteBrowser.test.ts` opens the built site. */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { deadLinks } from "../site/links.ts"
import { pages, read, sitePath, titleOf } from "../site/sidebar.ts"
import { repository, staged } from "../site/stage.ts"
import { docs } from "./blocks.ts"

describe("docs/site/sidebar.ts", () => {
  it("has each page of docs in one group", () => {
    const all = globSync("**/*.md", { cwd: docs, exclude: ["site/**"] })
    expect(all.filter((page) => !pages.includes(page)), "add these pages to docs/site/sidebar.ts").toEqual([])
    expect(pages.filter((page) => !page.startsWith("../")).toSorted()).toEqual(all.toSorted())
  })

  it("gives each page a path of its own and a title", () => {
    const paths = pages.map((page) => sitePath(page).toLowerCase())
    expect(new Set(paths).size).toBe(pages.length)
    expect(pages.filter((page) => titleOf(read(page)) === "")).toEqual([])
  })
})

describe("docs/site/stage.ts", () => {
  it("leads from page to page, and to GitHub for other files", () => {
    const text = "[a](limits.md#servers) [b](#c) [`d`](../packages/server/src/Tool.ts) [e](programs) [f](https://e.org)"
    expect(staged("http.md", text)).toBe(
      "[a](limits.md#servers) [b](#c) " +
        `[\`d\`](${repository}/blob/main/packages/server/src/Tool.ts) [e](${repository}/tree/main/docs/programs) ` +
        "[f](https://e.org)"
    )
    expect(staged("../CHANGELOG.md", "[a](docs/http.md)")).toBe("[a](http.md)")
    expect(staged("providers/okta.md", "[a](../README.md)")).toBe("[a](../guides.md)")
  })

  it("leaves code alone, and omits comments", () => {
    const code = "```ts\na[0](b.md) // <!-- c -->\n```\n`a[0](b.md)` ``a`[0](b.md)``"
    expect(staged("http.md", `${code}\n| a | <!-- b --> |\n<!-- \`b\` -->`)).toBe(`${code}\n| a | |\n`)
  })

  it("rejects a link to a file that does not exist", () => {
    expect(() => staged("http.md", "[a](nowhere.md)"))
      .toThrow("http.md: the link nowhere.md leads to a file that does not exist")
  })
})

describe("docs/site/links.ts", () => {
  let folder = ""
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "skein-links-"))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const check = (files: Readonly<Record<string, string>>) => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    return deadLinks(folder, "/base/")
  }

  it("reports pages, anchors and files that do not exist, and no other link", () => {
    const link = (href: string) => `<a href="${href}">x</a>`
    expect(
      check({
        "index.html": link("/base/a/b.html") + link("a/b#c%20d") + link("https://example.org/x") + link("a/"),
        "a/b.html": `<h1 id="c d">${link("../index.html")}`,
        "a/index.html": link("#no") + link("../gone.html") + link("/outside") + "<img src=\"no.png\">" +
          link("b.html#e")
      }).toSorted()
    ).toEqual([
      "a/index.html: #no: a/index.html has no such anchor",
      "a/index.html: ../gone.html does not exist",
      "a/index.html: /outside does not exist",
      "a/index.html: b.html#e: a/b.html has no such anchor",
      "a/index.html: no.png does not exist"
    ])
  })
})
