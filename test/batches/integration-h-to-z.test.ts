import { defineBatch } from '../kit/batch.ts';

defineBatch('test/integration/**/!(redis-*|status-cache-*|[a-g]*).test.ts');
