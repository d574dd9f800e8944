/** The built site in Chromium. Needs a browser (see `packages/client/test/browser`), and `npm run site` before. */
import { assert, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync, readFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { browser, type Tab } from "../../packages/auth/test/proxy/chromium.ts"
import { find } from "../../packages/client/test/browser/chromium.ts"
import { deadLinks } from "../site/links.ts"
import { built } from "../site/places.ts"
import { serveSite } from "../site/serve.ts"
import { docs, pages, read, sitePath } from "../site/sidebar.ts"

const chromium = find()
/** Whether the site is built, with all pages of this checkout. */
const isBuilt = pages.every((page) => existsSync(join(built, sitePath(page))))

/** Serves the built site on a free port, and returns its origin. */
const serving = Effect.acquireRelease(
  Effect.promise(() => serveSite(built, "/", 0)),
  (server) => Effect.sync(() => void server.close().closeAllConnections())
).pipe(Effect.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`))

// Runs before the scripts of each page. Errors of files that do not load reach the window in the capture phase.
const collector = `
  window.problems = []
  const problem = (text) => void window.problems.push(location.pathname + ": " + text)
  for (const level of ["error", "warn"]) console[level] = (...values) => problem(values.join(" "))
  addEventListener("error", (event) => problem(event.message ?? event.target.outerHTML), true)
  addEventListener("unhandledrejection", ({ reason }) => problem(String(reason)))
`

/** Opens a tab of a size and a colour scheme. */
const opening = (open: () => Promise<Tab>, width: number, scheme: "light" | "dark" = "light") =>
  Effect.promise(async () => {
    const tab = await open()
    const mobile = width < 600
    await tab.send("Page.addScriptToEvaluateOnNewDocument", { source: collector })
    await tab.send("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile })
    await tab.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] })
    return tab
  })

/** Opens the first page, and types a text into its search. */
const search = async (tab: Tab, origin: string, text: string): Promise<void> => {
  await tab.goto(origin)
  await tab.until("document.querySelector('.VPHero')")
  await tab.evaluate("document.querySelector('#local-search button').click()")
  await tab.until("document.activeElement.id === 'localsearch-input'")
  await tab.send("Input.insertText", { text })
}

const problemsOf = async (tab: Tab): Promise<unknown> => tab.evaluate("window.problems")
const found =
  "[...document.querySelectorAll('.result')].find(({ textContent }) => textContent.includes('Long-running tasks'))"
const isTableWide =
  "[...document.querySelectorAll('.vp-doc table')].some(({ clientWidth, scrollWidth }) => scrollWidth > clientWidth)"
/** Code in tables that has a part of it on the next line. Longer code may end a line between two words. */
const broken = "[...document.querySelectorAll('td code')].filter((code) => /^[^ ]{1,24}$/.test(code.textContent) && " +
  "code.getClientRects().length > 1).map(({ textContent }) => textContent)"
const heading = "document.querySelector('.vp-doc h1')"

if (chromium === undefined || !isBuilt) {
  const name = "needs a browser and the built site: install Debian's `chromium`, and run `npm run site`"
  it.skipIf((process.env["CI"] ?? "") === "")(
    name,
    () => assert.fail("there is no Chromium, or no built site with all pages")
  )
} else {
  describe("the built site", () => {
    it("has no dead link", () => {
      expect(deadLinks(built, "/")).toEqual([])
    })

    it("lists each page in llms.txt, with its Markdown beside its HTML", () => {
      const text = readFileSync(join(built, "llms.txt"), "utf8")
      expect(text).toMatch(/^# Skein\n\n> Skein is a Model Context Protocol runtime/)
      const listed = Array.from(text.matchAll(/^- \[.+?\]\(\/(.+?\.md)\)/gm), ([, path]) => path!)
      expect(listed).toEqual(expect.arrayContaining(pages.map(sitePath)))
      expect(listed.filter((path) => !existsSync(join(built, path)))).toEqual([])
      expect(readFileSync(join(built, "llms-full.txt"), "utf8")).toContain(
        "\n# Effect in ten minutes for MCP authors\n"
      )
    })

    it.live("finds a guide by a word, and opens it from the results", () =>
      Effect.scoped(Effect.gen(function*() {
        const origin = yield* serving
        const tab = yield* opening(yield* browser(chromium), 1400)
        yield* Effect.promise(async () => {
          await search(tab, origin, "compensation")
          await tab.until(found)
          await tab.evaluate(`${found}.click()`)
          await tab.until(`${heading}?.textContent.startsWith('Long-running tasks')`)
          assert.strictEqual(await tab.evaluate("location.pathname"), "/tasks.html")
          assert.deepEqual(await problemsOf(tab), [])
        })
      })), 120_000)

    it.live.each([
      ["sticky sessions", "Several instances"],
      ["api key", "Recipe: an API key"],
      ["file upload", "Tools with a page"],
      ["rate limit", "Middleware"],
      ["health check", "Health and shutdown"],
      ["timeout", "Behind a proxy"],
      ["504", "504 Gateway Time-out"]
    ])("finds for %s: %s", ([words, page]) =>
      Effect.scoped(Effect.gen(function*() {
        const origin = yield* serving
        const tab = yield* opening(yield* browser(chromium), 1400)
        yield* Effect.promise(async () => {
          await search(tab, origin, words)
          await tab.until("document.querySelector('.result')")
          const first =
            "[...document.querySelectorAll('.result')].slice(0, 3).map(({ textContent }) => textContent).join()"
          expect(await tab.evaluate(first)).toContain(page)
        })
      })), 120_000)

    it.live("answers an unknown path with a page that leads home", () =>
      Effect.scoped(Effect.gen(function*() {
        const origin = yield* serving
        const tab = yield* opening(yield* browser(chromium), 1400)
        yield* Effect.promise(async () => {
          assert.strictEqual((await fetch(`${origin}/recipes/nowhere`)).status, 404)
          await tab.goto(`${origin}/recipes/nowhere`)
          await tab.until("document.querySelector('h1')?.textContent === 'Page not found'")
          assert.strictEqual(await tab.evaluate("document.querySelectorAll('#local-search button').length"), 1)
          await tab.evaluate("document.querySelector('.NotFound a').click()")
          await tab.until("document.querySelector('.VPHero')")
        })
      })), 120_000)

    it("has the signature of a function as its source has it", () => {
      const source = readFileSync(join(docs, "../packages/server/src/Tool.ts"), "utf8")
      const [, signature] = /^export const add = ([^]*?) =>\n {2}registerScoped/m.exec(source) ?? []
      expect(readFileSync(join(built, "api/server/Tool.md"), "utf8")).toContain(`\`\`\`ts\nfunction add${signature}\n`)
    })

    it.live("draws the diagrams, in light and dark colours", () =>
      Effect.scoped(Effect.gen(function*() {
        const origin = yield* serving
        const open = yield* browser(chromium)
        const backgrounds: Array<unknown> = []
        const diagrams = read("architecture.md").split("```mermaid").length - 1
        expect(diagrams).toBeGreaterThan(0)
        for (const scheme of ["light", "dark"] as const) {
          const tab = yield* opening(open, 1400, scheme)
          yield* Effect.promise(async () => {
            await tab.goto(`${origin}/architecture.html`)
            await tab.until(`document.querySelectorAll('.diagram svg').length === ${diagrams}`)
            assert.strictEqual(
              await tab.evaluate("document.documentElement.classList.contains('dark')"),
              scheme === "dark"
            )
            backgrounds.push(await tab.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert.deepEqual(await problemsOf(tab), [])
          })
        }
        assert.notStrictEqual(backgrounds[0], backgrounds[1])
      })), 120_000)

    it.live(
      "shows each page without an error, and no page or table is wider than a phone",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const origin = yield* serving
          const tab = yield* opening(yield* browser(chromium), 390)
          const wide: Array<string> = []
          const problems: Array<unknown> = []
          yield* Effect.promise(async () => {
            for (const path of [...pages.map(sitePath), "api/index.md", "api/server/Tool.md", "api/client/Client.md"]) {
              await tab.goto(`${origin}/${path.replace(/\.md$/, ".html")}`)
              await tab.until(heading)
              if (await tab.evaluate(`document.documentElement.scrollWidth > 390 || ${isTableWide}`) === true) {
                wide.push(path)
              }
              problems.push(...await problemsOf(tab) as ReadonlyArray<unknown>)
            }
          })
          expect({ problems, wide }).toEqual({ problems: [], wide: [] })
        })),
      300_000
    )

    it.live.each([390, 1280])(
      "shows whole names and all columns in tables at %i pixels",
      (width) =>
        Effect.scoped(Effect.gen(function*() {
          const origin = yield* serving
          const tab = yield* opening(yield* browser(chromium), width)
          yield* Effect.promise(async () => {
            for (const page of ["limits", "configuration", "several-instances", "comparison"]) {
              await tab.goto(`${origin}/${page}.html`)
              await tab.until(heading)
              expect([page, await tab.evaluate(broken), await tab.evaluate(isTableWide)]).toEqual([page, [], false])
            }
            await tab.goto(`${origin}/limits.html`)
            await tab.until(heading)
            const cell = "document.querySelector('.vp-doc td')"
            const column = await tab.evaluate("document.querySelector('.vp-doc th').textContent")
            expect(await tab.evaluate(`getComputedStyle(${cell}, '::before').content`))
              .toBe(width < 600 ? JSON.stringify(column) : "none")
          })
        })),
      120_000
    )
  })
}
