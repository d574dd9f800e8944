import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Chromium from "../packages/client/test/browser/chromium.ts"
import * as kit from "./kit.ts"

const chromium = Chromium.find()

const text = (url: string) => Effect.promise(async () => (await fetch(url)).text())

/** Does in the page what its reader does, and tells what they see. */
const reader = (query: string): string => `
  const frame = document.createElement("iframe")
  frame.src = "/house${query}"
  document.documentElement.append(frame)
  await new Promise((resolve) => frame.onload = resolve)
  const page = frame.contentDocument
  const of = (id) => page.getElementById(id)
  const wait = async (what, found) => {
    const end = performance.now() + 4_000
    while (!found()) {
      if (performance.now() > end) throw new Error(\`It did not come to \${what}: \${page.body.innerText}\`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  const until = async (id, words) => {
    await wait(words, () => of(id).textContent.includes(words))
    return of(id).textContent
  }
  const question = () => wait("a question", () => of("question").open)
  const call = (tool) => {
    of("tool").value = tool
    of("tool").dispatchEvent(new Event("change"))
    of("call").requestSubmit()
  }
  const press = (words) => Array.from(page.querySelectorAll("button")).find((button) => button.textContent === words).click()

  const status = await until("status", "Connected")
  const tools = Array.from(of("tool").options, (option) => option.text)
  call("brew")
  await until("result", "the leaves are in")
  const brewing = [of("progress").value, of("progress").max]
  const brewed = JSON.parse(await until("result", "A pot of")).content[0].text
  call("book")
  await question()
  const asked = [of("asker").textContent, of("message").textContent]
  const input = page.querySelector("#fields input")
  press("Answer")
  const empty = [of("question").open, input.validationMessage]
  input.value = "4"
  of("question").dispatchEvent(new Event("input"))
  press("Answer")
  const booked = JSON.parse(await until("result", "A table")).content[0].text
  call("book")
  await question()
  press("Decline")
  const declined = await until("result", "said no")
  call("brew")
  await until("result", "the leaves are in")
  press("Cancel")
  return { status, tools, brewing, brewed, asked, empty, booked, declined: declined !== "", cancelled: of("result").textContent }`

describe("npm run page", () => {
  it.live.skipIf(chromium === undefined)(
    "a page connects to the tea house, and its reader calls, watches, answers and cancels" +
      (chromium === undefined ? " · not checked: Chromium is not found, set CHROMIUM to its path" : ""),
    () =>
      Effect.gen(function*() {
        const house = yield* kit.start(kit.program("tour/main.ts", "--port", "0"))
        const url = yield* kit.urlOf(house)
        const server = yield* kit.start(kit.program("browser/main.ts", "--port", "0", "--server", url))
        const { href, origin, search } = new URL(yield* Effect.promise(() => server.until(/http:\/\/\S+\n/)))
        const files = { "/house": yield* text(href), "/page.js": yield* text(`${origin}/page.js`) }
        const seen = yield* Chromium.browse(chromium!, "", reader(search), files)
        expect(seen).toEqual({
          status: "Connected to The tea house, in revision 2026-07-28.",
          tools: ["The bill, please", "book", "brew", "Cater for a party", "greet", "order"],
          brewing: [3, 3],
          brewed: "A pot of sencha, steeped for 90 seconds.",
          asked: ["The tea house", "How many will you be?"],
          empty: [true, "\"people\" is required and was left empty"],
          booked: "A table for 4 in the name of Ada.",
          declined: true,
          cancelled: ""
        })
        yield* Effect.promise(() => house.until(/tools\/call brew .* cancelled/))
        expect((yield* Effect.promise(() => fetch(`${origin}/none`))).status).toBe(404)
      })
  )
})
