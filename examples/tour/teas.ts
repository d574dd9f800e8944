/** The teas that the tea house serves. */
import * as Schema from "effect/Schema"

export const teas = {
  sencha: { origin: "Shizuoka", celsius: 75, seconds: 90, price: 4.5 },
  oolong: { origin: "Anxi", celsius: 90, seconds: 180, price: 5 },
  assam: { origin: "Assam", celsius: 96, seconds: 240, price: 3.5 }
} as const

export const TeaName = Schema.Literals(["sencha", "oolong", "assam"]).annotate({ description: "The name of a tea" })
