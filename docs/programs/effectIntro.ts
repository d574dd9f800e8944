import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"

// #region values
const six = Effect.succeed(6)
const later = Effect.sleep("10 millis")

const answer = Effect.gen(function*() {
  yield* later
  const number = yield* six
  return number * 7
})
// #endregion

// #region errors
class SoldOut extends Data.TaggedError("SoldOut")<{ readonly message: string }> {}

const stock = new Map([["sencha", 2]])

const take = (tea: string) =>
  Effect.gen(function*() {
    const left = stock.get(tea) ?? 0
    if (left === 0) return yield* new SoldOut({ message: `There is no ${tea} left` })
    stock.set(tea, left - 1)
    return `One ${tea}`
  })

const takeOr = (tea: string, other: string) => take(tea).pipe(Effect.catchTag("SoldOut", () => take(other)))
// #endregion

// #region promises
class Unreachable extends Data.TaggedError("Unreachable")<{ readonly message: string }> {}

const textOf = (url: string) =>
  Effect.tryPromise({
    try: async (signal) => (await fetch(url, { signal })).text(),
    catch: (cause) => new Unreachable({ message: `The page cannot be read: ${String(cause)}` })
  })
// #endregion

// #region schemas
const Cups = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 }))
const Order = Schema.Struct({ tea: Schema.String, cups: Cups, at: Schema.DateFromString })

// { tea: "sencha", cups: 2, at: Date }
const order = Schema.decodeUnknownEffect(Order)({ tea: "sencha", cups: 2, at: "2026-07-28T09:30:00Z" })
// #endregion

// #region services
class Shop extends Context.Service<Shop, { readonly priceOf: (tea: string) => Effect.Effect<number> }>()("Shop") {
  static readonly layer = Layer.effect(
    Shop,
    Effect.gen(function*() {
      yield* Effect.addFinalizer(() => Effect.logInfo("The shop is closed"))
      return { priceOf: (tea) => Effect.succeed(tea.length) }
    })
  )
}

const price = Tool.layer(
  Tool.make("price", { input: { tea: Schema.String } }),
  ({ tea }) =>
    Effect.gen(function*() {
      const { priceOf } = yield* Shop
      return `${yield* priceOf(tea)} €`
    })
)

const Server = McpServer.layer({ name: "shop", version: "1.0.0" }, price).pipe(Layer.provide(Shop.layer))
// #endregion

// #region together
const pricesOf = (teas: ReadonlyArray<string>) =>
  Effect.forEach(
    teas,
    (tea) =>
      Effect.flatMap(Shop, ({ priceOf }) => priceOf(tea)).pipe(
        Effect.timeout("5 seconds"),
        Effect.retry({ times: 2, schedule: Schedule.exponential("100 millis") })
      ),
    { concurrency: 4 }
  )
// #endregion

export { answer, order, pricesOf, Server, Shop, takeOr, textOf }
