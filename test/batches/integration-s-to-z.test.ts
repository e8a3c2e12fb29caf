import { defineBatch } from '../kit/batch.ts';

defineBatch('test/integration/**/!(status-cache-*|[!s-z]*).test.ts');
