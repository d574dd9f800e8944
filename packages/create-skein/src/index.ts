export * as CreateSkein from "./CreateSkein.ts"
