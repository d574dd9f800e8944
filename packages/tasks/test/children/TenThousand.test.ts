/** As many children as one call may start. */
import { it } from "@effect/vitest"
import { fanOut } from "./items.ts"

it.live("runs ten thousand children, of which a fifth fail", () => fanOut(10_000), 600_000)
