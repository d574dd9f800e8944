/** `npm run try -- packages/console/test/pictures.ts <folder>`: pictures of the page, for people who look at it. */
import * as ConsoleSource from "@skein/console/ConsoleSource"
import * as Effect from "effect/Effect"
import { find } from "../../client/test/browser/chromium.ts"
import { browser } from "../../auth/test/proxy/chromium.ts"
import { look, shoot } from "./camera.ts"
import * as kit from "./kit.ts"

const jobs = ConsoleSource.layer({
  name: "tasks",
  read: ({ limit }) =>
    Effect.succeed({
      nodes: [
        {
          id: "all",
          kind: "group",
          label: "Tasks in the store",
          state: "running",
          waitsFor: "100,000 tasks",
          more: { total: 100_000, after: String(limit) },
          details: { completed: 99_210, failed: 12, "input required": 3 }
        },
        ...Array.from({ length: Math.min(limit, 6) }, (_, at): ConsoleSource.Node => ({
          id: `t${at}`,
          parent: "all",
          kind: "task",
          label: `cater ${["wedding", "picnic", "breakfast", "birthday", "tasting", "supper"][at]}`,
          state: at === 3 ? "failed" : at === 1 ? "waiting" : "running",
          waitsFor: at === 1 ? "an answer: How many guests?" : at === 3 ? undefined : "sleep until tomorrow",
          since: Date.now() - at * 4_000_000,
          progress: { progress: at + 1, total: 7 },
          principal: "ada@example.com",
          canInterrupt: true
        })),
        {
          id: "t1.1",
          parent: "t1",
          kind: "step",
          label: "choose the tea",
          state: "done",
          since: Date.now() - 3_000_000
        },
        { id: "t1.2", parent: "t1", kind: "step", label: "order scones", state: "running", waitsFor: "attempt 2 of 5" },
        {
          id: "t1.q",
          parent: "t1",
          kind: "question",
          label: "How many guests?",
          state: "waiting",
          waitsFor: "the answer of a person"
        }
      ]
    }),
  more: ({ after, limit }) =>
    Effect.succeed({
      nodes: Array.from({ length: limit }, (_, at): ConsoleSource.Node => ({
        id: `m${Number(after) + at}`,
        parent: "all",
        kind: "task",
        label: `cater number ${Number(after) + at}`,
        state: "done",
        since: Date.now() - 9e8 - at * 60_000
      })),
      after: String(Number(after) + limit)
    })
})

const wait = (milliseconds: number) => Effect.sleep(milliseconds)

const program = Effect.gen(function*() {
  const { console: { url: consoleUrl }, url } = yield* kit.open({ showPayloads: true }, jobs)
  const signal = yield* kit.signal
  const tab = yield* Effect.flatMap(browser(find()!), (open) => Effect.promise(open))
  yield* Effect.promise(() => look(tab, false))
  yield* Effect.promise(() => tab.goto(consoleUrl))
  yield* Effect.promise(() => tab.until("document.querySelector('#connection').dataset.state === 'live'"))
  yield* wait(300)
  yield* shoot(tab, "1-empty")
  yield* Effect.promise(async () => {
    const ada = await kit.visit(url, signal, {
      name: "Teapot Desktop",
      user: "ada@example.com",
      capabilities: { elicitation: {} }
    })
    kit.leave(ada.call("tools/call", { name: "taste", _meta: { progressToken: 1 } }))
    kit.leave(
      ada.call("tools/call", {
        name: "brew",
        arguments: { tea: "Darjeeling", minutes: 5 },
        _meta: { progressToken: 2 }
      })
    )
    kit.leave(ada.call("tools/call", { name: "brew", arguments: { tea: "Assam" } }))
    const grace = await kit.visit(url, signal, {
      name: "An agent with a rather long name that somebody chose",
      user: "grace@example.com"
    })
    kit.leave(grace.listen())
    await (await grace.call("resources/subscribe", { uri: "tea://menu" })).text()
    kit.leave(grace.call("tools/call", { name: "warm_the_pot" }))
    for (let at = 0; at < 12; at++) await kit.visit(url, signal, { name: `Kettle ${at + 1}` })
    kit.leave(
      kit.ask(url, signal, "tools/call", { name: "brew", arguments: { tea: "Oolong" } }, {
        "x-user": "lin@example.com"
      })
    )
    kit.leave(
      kit.ask(url, signal, "subscriptions/listen", {
        notifications: { toolsListChanged: true, resourceSubscriptions: ["tea://menu"] }
      })
    )
  })
  yield* wait(2_500)
  yield* shoot(tab, "2-busy")
  yield* Effect.promise(() => look(tab, true))
  yield* Effect.promise(() =>
    tab.evaluate("[...document.querySelectorAll('.row')].find((row) => row.textContent.includes('brew')).click()")
  )
  yield* wait(300)
  yield* shoot(tab, "3-details-dark")
  yield* Effect.promise(() => tab.evaluate("document.getElementById('interruptRow').click()"))
  yield* wait(300)
  yield* shoot(tab, "4-confirm-dark")
  yield* Effect.promise(() => tab.evaluate("document.getElementById('yes').click()"))
  yield* wait(1_500)
  yield* shoot(tab, "5-interrupted-dark")
  yield* Effect.promise(() => look(tab, false))
  yield* Effect.promise(() =>
    tab.evaluate("(filter.value = 'ada@', filter.dispatchEvent(new Event('input')), filter.focus())")
  )
  yield* wait(300)
  yield* shoot(tab, "6-filter")
  yield* Effect.promise(() => look(tab, false, 420, 800))
  yield* wait(300)
  yield* shoot(tab, "7-narrow")
  yield* Effect.promise(() => look(tab, false))
  yield* Effect.promise(() =>
    tab.evaluate("(filter.value = '', filter.dispatchEvent(new Event('input')), viewport.scrollTop = 1e6)")
  )
  yield* wait(300)
  yield* shoot(tab, "8-end")
  return tab
})

await Effect.runPromise(Effect.scoped(program))
await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
  const open = yield* browser(find()!)
  const tab = yield* Effect.promise(open)
  yield* Effect.scoped(Effect.gen(function*() {
    const { console: { url } } = yield* kit.open()
    yield* Effect.promise(() => look(tab, false))
    yield* Effect.promise(() => tab.goto(url))
    yield* wait(1_000)
  }))
  yield* wait(800)
  yield* shoot(tab, "9-lost")
})))

/** Scrolls to the end and back for some seconds, and returns the times between frames in milliseconds. */
const scrolling = `new Promise((resolve) => {
  const times = []
  let before = performance.now()
  const start = before
  const frame = (at) => {
    times.push(at - before)
    before = at
    viewport.scrollTop = (Math.sin((at - start) / 700) + 1) / 2 * viewport.scrollHeight
    if (at - start < 6000) requestAnimationFrame(frame)
    else resolve(times.slice(2).sort((one, other) => one - other))
  }
  requestAnimationFrame(frame)
})`

await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
  const { console: { url }, server } = yield* kit.open()
  const began = performance.now()
  yield* kit.crowd(server, 10_000)
  console.log(`10,000 sessions opened in ${Math.round(performance.now() - began)} ms`)
  const reading = performance.now()
  yield* server.inspect
  console.log(`inspect: ${(performance.now() - reading).toFixed(1)} ms`)
  const open = yield* browser(find()!)
  const tab = yield* Effect.promise(open)
  yield* Effect.promise(() => look(tab, false))
  const loading = performance.now()
  yield* Effect.promise(() => tab.goto(url))
  yield* Effect.promise(() => tab.until("document.getElementById('counts').textContent.includes('10,000 sessions')"))
  console.log(`shown ${Math.round(performance.now() - loading)} ms after the navigation began`)
  const usage = process.cpuUsage()
  const times = (yield* Effect.promise(() => tab.evaluate(scrolling))) as ReadonlyArray<number>
  const { user } = process.cpuUsage(usage)
  const at = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))]!.toFixed(1)
  console.log(`${times.length} frames in 6 s: p50 ${at(0.5)} p95 ${at(0.95)} p99 ${at(0.99)} worst ${at(1)} ms`)
  console.log(`server: ${Math.round(user / 60_000)}% of a core while one viewer looks`)
  console.log(
    `rows in the document: ${yield* Effect.promise(() => tab.evaluate("document.querySelectorAll('.row').length"))}`
  )
  yield* shoot(tab, "10-crowd")
})))
process.exit(0)
