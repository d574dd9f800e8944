import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { browser } from "../packages/auth/test/proxy/chromium.ts"
import * as Chromium from "../packages/client/test/browser/chromium.ts"
import * as kit from "./testKit.ts"

const chromium = Chromium.find()

const text = (url: string) => Effect.promise(async () => (await fetch(url)).text())

/** A script that uses the page as a user would, and returns the texts that the page shows. */
const userScript = (query: string): string => `
  const frame = document.createElement("iframe")
  frame.src = "/index${query}"
  document.documentElement.append(frame)
  await new Promise((resolve) => frame.onload = resolve)
  const page = frame.contentDocument
  const byId = (id) => page.getElementById(id)
  const wait = async (what, condition) => {
    const end = performance.now() + 60_000
    while (!condition()) {
      if (performance.now() > end) throw new Error(\`the page did not show \${what}: \${page.body.innerText}\`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  const until = async (id, words) => {
    await wait(words, () => byId(id).textContent.includes(words))
    return byId(id).textContent
  }
  const question = () => wait("a question", () => byId("question").open)
  const call = (tool) => {
    byId("tool").value = tool
    byId("tool").dispatchEvent(new Event("change"))
    byId("call").requestSubmit()
  }
  const press = (words) => Array.from(page.querySelectorAll("button")).find((button) => button.textContent === words).click()

  const status = await until("status", "Connected")
  const tools = Array.from(byId("tool").options, (option) => option.text)
  call("brew")
  await until("result", "steeping the leaves")
  const brewing = [byId("progress").value, byId("progress").max]
  const brewed = JSON.parse(await until("result", "A pot of")).content[0].text
  call("book")
  await question()
  const asked = [byId("asker").textContent, byId("message").textContent]
  const input = page.querySelector("#fields input")
  press("Answer")
  const empty = [byId("question").open, input.validationMessage]
  input.value = "4"
  byId("question").dispatchEvent(new Event("input"))
  press("Answer")
  const booked = JSON.parse(await until("result", "Booked a table")).content[0].text
  call("book")
  await question()
  press("Decline")
  const declined = await until("result", "The user declined")
  call("brew")
  await until("result", "steeping the leaves")
  press("Cancel")
  return { status, tools, brewing, brewed, asked, empty, booked, declined: declined !== "", cancelled: byId("result").textContent }`

describe("npm run page", () => {
  it.live.skipIf(chromium === undefined)(
    "connects to the tea house, calls tools, shows progress and questions, and cancels a call",
    () =>
      Effect.gen(function*() {
        const teaHouse = yield* kit.start(kit.program("tour/main.ts", "--port", "0"))
        const url = yield* kit.urlOf(teaHouse)
        const server = yield* kit.start(kit.program("browser/main.ts", "--port", "0", "--server", url))
        const { href, origin, search } = new URL(yield* Effect.promise(() => server.until(/http:\/\/\S+\n/)))
        const files = { "/index": yield* text(href), "/page.js": yield* text(`${origin}/page.js`) }
        const seen = yield* Chromium.browse(chromium!, "", userScript(search), files)
        expect(seen).toEqual({
          status: "Connected to \"The tea house\" with revision 2026-07-28.",
          tools: ["greet", "Calculate the bill", "brew", "order", "book", "Cater for a party"],
          brewing: [3, 3],
          brewed: "A pot of sencha, steeped for 90 seconds.",
          asked: ["The tea house", "For how many people?"],
          empty: [true, "\"people\" is required and was left empty"],
          booked: "Booked a table for 4 in the name of Ada.",
          declined: true,
          cancelled: ""
        })
        yield* Effect.promise(() => teaHouse.until(/tools\/call brew .* cancelled/))
        expect((yield* Effect.promise(() => fetch(`${origin}/none`))).status).toBe(404)
      })
  )

  it.live.skipIf(chromium === undefined)(
    "signs the user in where the tea house requires it, stays signed in after a reload, and signs out",
    () =>
      Effect.gen(function*() {
        const port = String(yield* kit.freePort)
        const teaHouse = yield* kit.start(kit.program("tour/main.ts", "--auth", "--port", port))
        const url = yield* kit.urlOf(teaHouse)
        const server = yield* kit.start(kit.program("browser/main.ts", "--port", "0", "--server", url))
        const href = (yield* Effect.promise(() => server.until(/http:\/\/\S+\n/))).trim()
        const open = yield* browser(chromium!)
        yield* Effect.promise(async () => {
          const tab = await open()
          const text = (id: string) => `document.getElementById("${id}").textContent`
          await tab.goto(href)
          await tab.until(`${text("status")}.startsWith("The server requires a sign-in at 127.0.0.1:")`)
          expect(await tab.evaluate("document.getElementById(\"signOut\").hidden")).toBe(true)
          await tab.evaluate("document.getElementById(\"signIn\").click()")
          await tab.press("ada")
          await tab.press("allow")
          const connected = `${text("status")}.startsWith("Connected to \\"The tea house\\"")`
          await tab.until(connected)
          // The code is not in the address, which is loaded again.
          expect(await tab.evaluate("location.href")).toBe(href)
          await tab.evaluate("window.isOldPage = true; location.reload()")
          await tab.until(`window.isOldPage === undefined && ${connected}`)
          expect(await tab.evaluate("location.href")).toBe(href)
          await tab.until("!document.getElementById(\"signOut\").hidden")
          await tab.evaluate("document.getElementById(\"signOut\").click()")
          await tab.until(`${text("status")}.startsWith("The server requires a sign-in")`)
        })
      })
  )
})
