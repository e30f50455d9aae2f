/** The changelog with a section of this version and day (YYYY-MM-DD), and nothing unreleased. */
export function released(changelog: string, version: string, day: string): string;
