/** Texts of the page. */
import type { Row } from "../src/internal/messages.ts"

const pad = (number: number): string => String(number).padStart(2, "0")

/** A time span in its two largest units. */
export const formatAge = (milliseconds: number): string => {
  const seconds = Math.max(0, Math.floor(milliseconds / 1_000))
  const [minutes, hours, days] = [60, 3_600, 86_400].map((unit) => Math.floor(seconds / unit))
  if (days! > 0) return `${days}d ${hours! % 24}h`
  if (hours! > 0) return `${hours}h ${pad(minutes! % 60)}m`
  return minutes! > 0 ? `${minutes}m ${pad(seconds % 60)}s` : `${seconds}s`
}

export const formatCount = (number: number): string => number.toLocaleString("en")

/** Progress as a text, and as a fraction if its total is known. */
export const formatProgress = (progress: Row["progress"]): readonly [string, number | undefined] => {
  if (progress === undefined) return ["", undefined]
  const { progress: done, total } = progress
  const rounded = Math.round(done * 100) / 100
  if (total === undefined || !(total > 0)) return [formatCount(rounded), undefined]
  const fraction = Math.min(1, Math.max(0, done / total))
  return [`${Math.round(fraction * 100)}%`, fraction]
}

const names: Readonly<Record<string, string>> = {
  server: "Server",
  session: "Session",
  request: "Request",
  task: "Task",
  step: "Step",
  question: "Question",
  stream: "Stream",
  subscription: "Subscription",
  queue: "Queue",
  worker: "Worker",
  group: "Group",
  problem: "Problem",
  failure: "Failure"
}

/** The kind of a row, for people. */
export const kindName = (kind: string): string => names[kind] ?? kind

const letters: Readonly<Record<string, string>> = {
  server: "S",
  session: "C",
  request: "R",
  task: "T",
  step: "t",
  question: "?",
  stream: "≋",
  subscription: "◉",
  queue: "Q",
  worker: "W",
  group: "≡",
  problem: "!",
  failure: "!",
  more: "…"
}

/** The letter of a kind, for its icon. */
export const kindLetter = (kind: string): string => letters[kind] ?? "·"
