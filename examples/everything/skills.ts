/**
 * A skill with files in folders, and one without stable content.
 */
import * as Skill from "@skein/skills/Skill"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { dot } from "./media.ts"

const brewing = Skill.make({
  name: "brewing",
  description: "Brews tea. Use it when somebody asks for a cup of tea.",
  license: "MIT",
  instructions: "Read references/times.md for the time of each tea. Show assets/dot.png when the tea is ready.",
  files: {
    "references/times.md": "- green: 2 minutes\n- black: 4 minutes\n",
    "assets/dot.png": dot
  }
})

const today = Skill.dynamic({
  name: "today",
  description: "Says which tea is fresh today.",
  prefix: "tea",
  instructions: Effect.sync(() => `Offer the tea of day ${new Date().getUTCDay()}.`)
})

export const skills = Layer.merge(Skill.layer(brewing), today)
