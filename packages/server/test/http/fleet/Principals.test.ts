/** Two principals at the nodes of a fleet in memory. */
import * as Effect from "effect/Effect"
import { MemoryFleet } from "./memoryFleet.ts"
import { principalTests } from "./principalTests.ts"

principalTests(Effect.sync(() => new MemoryFleet()))
